package streamjson_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

func FuzzLines(f *testing.F) {
	f.Add([]byte(strings.Join([]string{one, request, result}, "\n")))
	sessiontest.FuzzEngine(f, func() engine.Engine { return newEngine() }, append(greeting(), expect(userLine)), filepath.Join("testdata", "*.ndjson"))
}
