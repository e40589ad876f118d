package jsonline_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/busdk/bus-agent/jsonline"
)

// What is escaped is the same value, and nothing in it drives a terminal.
func FuzzEscapeControls(f *testing.F) {
	for _, s := range []string{"", "plain", "ü\u007f\u0080\u009b\u009f\u00a0\x1b\n\ufffd", "\u061c\u200e\u200f\u2010\u202a\u202e\u202f\u2066\u2069\u206a", strings.Repeat("x", 17) + "\u009b" + strings.Repeat("é", 9) + "\u202e", "\xc2\xe2\x80\xd8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(in); err != nil {
			t.Fatal(err)
		}
		text := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
		safe := jsonline.EscapeControls(append([]byte("\u009b"), text...), 2)
		if !bytes.HasPrefix(safe, []byte("\u009b")) {
			t.Fatalf("what is before the text was changed: %q", safe)
		}
		safe = safe[2:]
		var out, want string
		if json.Unmarshal(text, &want) != nil || json.Unmarshal(safe, &out) != nil || out != want || !utf8.Valid(safe) {
			t.Errorf("%q becomes %q", text, safe)
		}
		if strings.ContainsFunc(string(safe), jsonline.IsControl) {
			t.Errorf("%q holds a control", safe)
		}
	})
}
