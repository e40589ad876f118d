package jsonline_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/jsonline"
)

// code is a tool's output as written in a line: source, with many escapes.
var code = strings.Repeat(`func main() {\n\tif err := run(os.Args[1:]); err != nil {\n\t\tfmt.Fprintf(os.Stderr, \"%s: %v\\n\", name, err)\n\t}\n}\n`, 40)

func BenchmarkSkip(b *testing.B) {
	line := []byte(`{"type":"user","message":{"content":[{"type":"tool_result","content":"` + code + `"}]}}`)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		r := jsonline.New(line)
		if !r.End() {
			b.Fatal("not read")
		}
	}
}

func BenchmarkUnescape(b *testing.B) {
	raw := []byte(code)
	b.SetBytes(int64(len(raw)))
	var dst []byte
	for b.Loop() {
		dst = jsonline.Unescape(dst[:0], raw)
	}
}

func BenchmarkEncodingJSON(b *testing.B) {
	line := []byte(`{"type":"user","message":{"content":[{"type":"tool_result","content":"` + code + `"}]}}`)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if !json.Valid(line) {
			b.Fatal("not read")
		}
	}
}
