package appserver_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/appserver"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

func FuzzLines(f *testing.F) {
	f.Add([]byte(strings.Join([]string{turn1, begun1, text1, ended1}, "\n")))
	newEngine := func() engine.Engine { return &appserver.Engine{} }
	sessiontest.FuzzEngine(f, newEngine, append(handshake(), expect(startTurn)), filepath.Join("testdata", "*.ndjson"))
}
