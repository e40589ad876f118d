package instructions

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tailscale/hujson"
)

// FuzzBlock checks for any content that a block keeps the user's bytes, that adding it
// is idempotent, and that removing it restores the file.
func FuzzBlock(f *testing.F) {
	f.Add("", "text", true)
	f.Add("user", "text\n", false)
	f.Add("# bus-agent:begin n v1 made=1 join=true bytes=0 id=0\n# bus-agent:end n id=0\n", "# bus-agent:end n id=0\n", true)
	f.Fuzz(func(t *testing.T, content, text string, hash bool) {
		b := Block{Name: "n", Comment: CommentHTML, Text: text}
		if hash {
			b.Comment = CommentHash
		}
		once, err := b.add([]byte(content), 0)
		if errors.Is(err, ErrEdited) {
			return
		}
		if err != nil || !bytes.HasPrefix(once, []byte(content)) {
			t.Fatalf("%q became %q, %v", content, once, err)
		}
		if twice, err := b.add(once, 0); err != nil || !bytes.Equal(twice, once) {
			t.Fatalf("twice = %q, %v, once %q", twice, err, once)
		}
		if got, _, err := b.remove(once); err != nil || got == nil || string(got) != content {
			t.Fatalf("restored = %q, %v, want %q", got, err, content)
		}
	})
}

// FuzzJSONList checks for any content that adding keeps every byte and is
// idempotent, and that removing restores the file.
func FuzzJSONList(f *testing.F) {
	for _, seed := range []string{
		`{}`, "{\n}\n", `{"context": {"fileName": "X"}}`, "{ // c\n \"a\": [1,], /* d */\n}\n// e", `{"context":{"fileName":["a",],},}`,
		`{"context": {}, "busAgentOwned": {"version":1,"at":[0],"lists":[]}}`, "{\"a\":1//\n}", "", "[]",
	} {
		f.Add(seed, "context", "fileName", "AGENTS.md", "GEMINI.md")
	}
	f.Fuzz(func(t *testing.T, content, outer, inner, value, preset string) {
		j := JSONList{Keys: []string{outer, inner}, Value: value, Defaults: []string{preset}}
		if j.check() != nil {
			return
		}
		once, err := j.add([]byte(content), 0)
		if err != nil || bytes.Contains([]byte(content), []byte(ownedKey)) {
			return // an existing mark is undone first
		}
		if !isSubsequence(content, string(once)) {
			t.Fatalf("%q became %q", content, once)
		}
		if _, err := hujson.Parse(once); err != nil {
			t.Fatalf("%q became %q: %v", content, once, err)
		}
		if twice, err := j.add(once, 0); err != nil || !bytes.Equal(twice, once) {
			t.Fatalf("twice = %q, %v, once %q", twice, err, once)
		}
		if got, _, err := j.remove(once); err != nil || string(got) != content {
			t.Fatalf("restored = %q, %v, want %q", got, err, content)
		}
	})
}

// FuzzJSONListMark checks that a forged mark neither makes removal fail nor leaves
// invalid JSON.
func FuzzJSONListMark(f *testing.F) {
	f.Add(`{"context": {"fileName": ["AGENTS.md"]}, "busAgentOwned": {"version":1,"at":[0,5,9],"lists":[{"keys":["context","fileName"],"value":"AGENTS.md","created":2}]}}`)
	f.Add(`{"busAgentOwned": {"version":1,"made":1,"lists":[{"keys":["context","fileName"],"value":"AGENTS.md","created":9,"wrapped":true}]}}`)
	f.Fuzz(func(t *testing.T, content string) {
		j := JSONList{Keys: []string{"context", "fileName"}, Value: "AGENTS.md"}
		data, _, err := j.remove([]byte(content))
		if err != nil || data == nil {
			return
		}
		if _, err := hujson.Parse(data); err != nil {
			t.Fatalf("%q became %q: %v", content, data, err)
		}
		if _, err := j.add([]byte(content), 0); err != nil && !errors.Is(err, ErrUnparsable) {
			t.Fatal(err)
		}
	})
}

// isSubsequence reports whether all bytes of a are in b, in order.
func isSubsequence(a, b string) bool {
	for i := 0; i < len(b) && a != ""; i++ {
		if a[0] == b[i] {
			a = a[1:]
		}
	}
	return a == ""
}
