package streamjson_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/sessiontest"
)

func FuzzLines(f *testing.F) {
	f.Add([]byte(strings.Join([]string{one, question, result}, "\n")))
	sessiontest.FuzzEngine(f, func() session.Engine { return engine() }, append(greeting(), expect(userLine)), filepath.Join("testdata", "*.ndjson"))
}
