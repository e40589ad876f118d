package json

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/internal/bench/corpus"
)

var update = flag.Bool("update", false, "rewrite testdata/hostile.md")

// A hostile is a line that a careless reader takes for something else.
type hostile struct {
	name, line string
}

// inText returns a line whose text is a JSON value.
func inText(value string) string {
	return `{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":` + value + `}}`
}

// withMember returns a line with a value that is not needed.
func withMember(value string) string {
	return `{"type":"item.completed","more":` + value + `,"item":{"id":"item_0","type":"agent_message","text":"x"}}`
}

const depth = 100_000

func hostiles() []hostile {
	mega := strings.Repeat("a", 1<<20)
	good := inText(`"x"`)
	return []hostile{
		{"string: not UTF-8", inText("\"a\xffb\"")},
		{"string: a cut character", inText("\"a\xe2\x82\"")},
		{"string: an overlong encoding", inText("\"a\xc0\xafb\"")},
		{"string: an encoded surrogate", inText("\"a\xed\xa0\x80b\"")},
		{"string: \\ud800 alone", inText(`"a\ud800b"`)},
		{"string: \\udc00 alone", inText(`"a\udc00b"`)},
		{"string: surrogates the wrong way round", inText(`"\udc00\ud800"`)},
		{"string: a pair of surrogates", inText(`"\ud83d\ude00"`)},
		{"string: \\u0000", inText(`"a\u0000b"`)},
		{"string: NUL", inText("\"a\x00b\"")},
		{"string: a control character", inText("\"a\x01b\"")},
		{"string: a tab", inText("\"a\tb\"")},
		{"string: DEL and U+2028", inText("\"\x7f\u2028\"")},
		{"string: an unknown escape", inText(`"a\xb"`)},
		{"string: \\u with three digits", inText(`"a\u12"`)},
		{"string: \\u with no digit", inText(`"\u00zz"`)},
		{"string: 1 MB", inText(`"` + mega + `"`)},
		{"string: 1 MB of escapes", inText(`"` + strings.Repeat(`\n`, 1<<19) + `"`)},
		{"member: a control character", withMember("\"a\x01b\"")},
		{"member: not UTF-8", withMember("\"a\xffb\"")},
		{"member: an unknown escape", withMember(`"a\xb"`)},
		{"member: 1e400000", withMember("1e400000")},
		{"member: 1000 digits", withMember(strings.Repeat("7", 1000))},
		{"member: 01", withMember("01")},
		{"member: 1.", withMember("1.")},
		{"member: .5", withMember(".5")},
		{"member: +1", withMember("+1")},
		{"member: -", withMember("-")},
		{"member: NaN", withMember("NaN")},
		{"member: nul", withMember("nul")},
		{"member: nothing", withMember("")},
		{"member: [1,]", withMember("[1,]")},
		{"member: {,}", withMember("{,}")},
		{"member: {\"a\" 1}", withMember(`{"a" 1}`)},
		{"member: [}", withMember("[}")},
		{"member: {a:1}", withMember("{a:1}")},
		{"member: a comment", withMember("/**/1")},
		{"member: depth 1,000", withMember(strings.Repeat("[", 1000) + strings.Repeat("]", 1000))},
		{"member: depth 100,000, arrays", withMember(strings.Repeat("[", depth) + strings.Repeat("]", depth))},
		{"member: depth 100,000, objects", withMember(strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth))},
		{"member: depth 100,000, never closed", withMember(strings.Repeat("[", depth))},
		{"text is null", inText("null")},
		{"item is null", `{"type":"item.completed","item":null}`},
		{"name twice", `{"type":"a","type":"b"}`},
		{"object twice", `{"type":"a","item":{"id":"1","text":"x"},"item":{"text":"y"}}`},
		{"name with an escape", `{"ty\u0070e":"a"}`},
		{"name in capitals", `{"TYPE":"a"}`},
		{"line: empty", ""},
		{"line: spaces", "  \t"},
		{"line: cut in a string", good[:len(good)-5]},
		{"line: cut before the end", good[:len(good)-1]},
		{"line: cut after a colon", `{"type":`},
		{"line: cut after a comma", `{"type":"a",`},
		{"line: garbage after the end", good + "x"},
		{"line: two objects", good + good},
		{"line: NUL after the end", good + "\x00"},
		{"line: a comma after the last member", `{"type":"a",}`},
		{"line: no comma", `{"type":"a" "item":{}}`},
		{"line: a byte order mark", "\ufeff" + good},
		{"line: a form feed before it", "\f" + good},
		{"line: an array", "[" + good + "]"},
		{"line: a string", `"x"`},
		{"line: text", "error: something"},
	}
}

// verdict says how a candidate reads a line.
func verdict(r reader, line string) string {
	var n needs
	err := read(r, corpus.Codex, []byte(line), &n)
	switch {
	case errors.Is(err, errPanic):
		return "panics"
	case err != nil:
		return "refused"
	}
	if len(n.Text) > 60 {
		return fmt.Sprintf("%d bytes", len(n.Text))
	}
	return fmt.Sprintf("%q", strings.Join([]string{n.Type, n.Message, n.Text}, "|"))
}

// TestHostile records where the candidates differ from encoding/json. A
// difference that comes or goes with another version of one fails it.
func TestHostile(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	page.WriteString("| line | encoding/json | differs |\n| --- | --- | --- |\n")
	limit := candidates[0].new()
	for _, h := range hostiles() {
		want := verdict(limit, h.line)
		var differ []string
		for _, c := range candidates[1:] {
			if runnable(c.name) != nil {
				t.Skip("a candidate cannot run here, so its column cannot be compared: " + c.name)
			}
			if got := verdict(c.new(), h.line); got != want {
				differ = append(differ, c.name+": "+got)
			}
		}
		fmt.Fprintf(&page, "| %s | %s | %s |\n", cell(h.name), cell(want), cell(strings.Join(differ, "; ")))
	}
	file := filepath.Join("testdata", "hostile.md")
	if *update {
		if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(recorded), "\n"), strings.Split(page.String(), "\n")); diff != "" {
		t.Errorf("(-recorded +now)\n%s", diff)
	}
}

func cell(text string) string {
	if text == "" {
		return ""
	}
	return strings.ReplaceAll(text, "|", " ")
}

// What the project uses reads as encoding/json does, but for the names it means
// to take as they are.
func TestJSONLineReadsAsEncodingJSONDoes(t *testing.T) {
	t.Parallel()
	for _, h := range hostiles() {
		want, got := verdict(candidates[0].new(), h.line), verdict(newJSONLine(), h.line)
		if got != want && h.name != "name in capitals" {
			t.Errorf("%s: %s, encoding/json %s", h.name, got, want)
		}
	}
}
