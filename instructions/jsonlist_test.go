package instructions_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/instructions"
	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"
)

var list = instructions.JSONList{
	Path: ".gemini/settings.json", Keys: []string{"context", "fileName"}, Value: "AGENTS.md", Defaults: []string{"GEMINI.md"},
}

// settings returns a workspace with content in its settings file, and the path of the
// file.
func settings(t testing.TB, content string) (*instructions.Workspace, string) {
	t.Helper()
	dir := tempDir(t)
	write(t, dir, map[string]string{list.Path: content})
	return open(t, dir, false), filepath.Join(dir, list.Path)
}

// fileName returns context.fileName of settings with comments.
func fileName(t testing.TB, content string) []string {
	t.Helper()
	standard, err := hujson.Standardize([]byte(content))
	must(t, err)
	var v struct{ Context struct{ FileName []string } }
	if err := json.Unmarshal(standard, &v); err != nil {
		t.Fatalf("%v in %s", err, content)
	}
	return v.Context.FileName
}

// without returns content without the mark, which makes it readable.
func without(content string) string {
	head, rest, _ := strings.Cut(content, `"busAgentOwned": {`)
	_, rest, _ = strings.Cut(rest, `"at":[`)
	_, tail, _ := strings.Cut(rest, "]}")
	return head + "MARK" + tail
}

func TestAddToJSON(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ content, want string }{
		"empty object":           {`{}`, `{"context": {"fileName": ["GEMINI.md", "AGENTS.md"]}, MARK}`},
		"empty lines":            {"{\n}\n", "{\n  \"context\": {\"fileName\": [\"GEMINI.md\", \"AGENTS.md\"]},\n  MARK\n}\n"},
		"one line":               {`{"a": 1}`, `{"a": 1, "context": {"fileName": ["GEMINI.md", "AGENTS.md"]}, MARK}`},
		"tabs and CRLF":          {"{\r\n\t\"a\": 1\r\n}", "{\r\n\t\"a\": 1,\r\n\t\"context\": {\"fileName\": [\"GEMINI.md\", \"AGENTS.md\"]},\r\n\tMARK\r\n}"},
		"comments":               {"{\n  // x\n  \"a\": 1 // y\n  /* z */\n}", "{\n  // x\n  \"a\": 1, // y\n  /* z */\n  \"context\": {\"fileName\": [\"GEMINI.md\", \"AGENTS.md\"]},\n  MARK\n}"},
		"comment after one line": {"{\"a\": 1 // y\n}", "{\"a\": 1, // y\n \"context\": {\"fileName\": [\"GEMINI.md\", \"AGENTS.md\"]}, MARK}"},
		"comma at the end":       {"{\n  \"a\": 1,\n}", "{\n  \"a\": 1,\n  \"context\": {\"fileName\": [\"GEMINI.md\", \"AGENTS.md\"]},\n  MARK\n}"},
		"context":                {`{"context": {"a": 1}, "b": 2}`, `{"context": {"a": 1, "fileName": ["GEMINI.md", "AGENTS.md"]}, "b": 2, MARK}`},
		"string":                 {`{"context": {"fileName": "MY.md"}}`, `{"context": {"fileName": ["MY.md", "AGENTS.md"]}, MARK}`},
		"list":                   {`{"context": {"fileName": ["MY.md"]}}`, `{"context": {"fileName": ["MY.md", "AGENTS.md"]}, MARK}`},
		"empty list":             {`{"context": {"fileName": []}}`, `{"context": {"fileName": ["AGENTS.md"]}, MARK}`},
		"list in lines":          {"{\"context\": {\"fileName\": [\n  \"MY.md\", // mine\n]}}", "{\"context\": {\"fileName\": [\n  \"MY.md\", // mine\n  \"AGENTS.md\"\n]}, MARK}"},
		"the last name wins":     {`{"context": 1, "context": {"fileName": ["MY.md"]}}`, `{"context": 1, "context": {"fileName": ["MY.md", "AGENTS.md"]}, MARK}`},
		"escaped key":            {`{"context": {"fileName": ["MY.md"]}}`, `{"context": {"fileName": ["MY.md", "AGENTS.md"]}, MARK}`},
		"there already":          {`{"context": {"fileName": ["AGENTS.md", "MY.md"]}}`, ""},
		"string already":         {`{"context": {"fileName": "AGENTS.md"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, file := settings(t, test.content)
			must(t, w.AddToJSON(list))
			once := read(t, file)
			if test.want == "" {
				if once != test.content {
					t.Errorf("content = %q, want it unchanged", once)
				}
			} else if diff := cmp.Diff(test.want, without(once)); diff != "" {
				t.Error(diff)
			}
			if test.want != "" && !slices.Contains(fileName(t, strings.Replace(once, `"context": 1, `, "", 1)), "AGENTS.md") {
				t.Errorf("the list lacks the value: %s", once)
			}
			must(t, w.AddToJSON(list))
			if diff := cmp.Diff(once, read(t, file)); diff != "" {
				t.Errorf("adding it again: %s", diff)
			}
			must(t, w.RemoveFromJSON(list), w.RemoveFromJSON(list))
			if diff := cmp.Diff(test.content, read(t, file)); diff != "" {
				t.Errorf("restored: %s", diff)
			}
		})
	}
}

func TestAddToJSONLeavesAloneWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	for _, content := range []string{
		"", " ", "{", "[]", `"x"`, "null", `{"a": }`, `{"context": 1}`, `{"context": null}`, `{"context": []}`,
		`{"context": {"fileName": 1}}`, `{"context": {"fileName": {}}}`, `{"context": {"fileName": null}}`,
		`{"busAgentOwned": 1}`, `{"busAgentOwned": {"version": 2}}`, "\xef\xbb\xbf{}",
	} {
		w, file := settings(t, content)
		if err := w.AddToJSON(list); !errors.Is(err, instructions.ErrUnparsable) {
			t.Errorf("AddToJSON to %q = %v, want ErrUnparsable", content, err)
		}
		if got := read(t, file); got != content {
			t.Errorf("%q became %q", content, got)
		}
	}
}

func TestJSONInANewFile(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	w := open(t, dir, false)
	must(t, w.AddToJSON(list))
	file := filepath.Join(dir, list.Path)
	content := read(t, file)
	if diff := cmp.Diff([]string{"GEMINI.md", "AGENTS.md"}, fileName(t, content)); diff != "" {
		t.Error(diff)
	}
	if !json.Valid([]byte(content)) {
		t.Errorf("not standard JSON: %s", content)
	}
	must(t, w.RemoveFromJSON(list))
	if tree := snapshot(t, dir); len(tree) != 0 {
		t.Errorf("left: %v", tree)
	}
}

// TestRemoveFromJSONKeepsWhatCameLater edits the file between adding and
// removing.
func TestRemoveFromJSONKeepsWhatCameLater(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ content, old, new, want string }{
		"before it":           {"{\n  \"a\": 1\n}", `"a": 1`, `"a": 12`, "{\n  \"a\": 12\n}"},
		"behind it":           {"{\n  \"a\": 1\n}", "\n}", ",\n  \"b\": 2\n}", "{\n  \"a\": 1,\n  \"b\": 2\n}"},
		"comment":             {"{\n  \"a\": 1\n}", "\n  \"context\"", "\n  // why\n  \"context\"", "{\n  \"a\": 1\n  // why\n  \n}"},
		"in the list":         {`{"a": 1}`, `"AGENTS.md"]}`, `"AGENTS.md", "MY.md"]}`, `{"a": 1, "context": {"fileName": ["GEMINI.md", "MY.md"]}}`},
		"next to the list":    {`{"a": 1}`, `"AGENTS.md"]}`, `"AGENTS.md"], "x": 1}`, `{"a": 1, "context": { "x": 1}}`},
		"comment in the list": {`{}`, `"AGENTS.md"]}`, `"AGENTS.md" /* mine */]}`, `{"context": {"fileName": ["GEMINI.md" /* mine */]}}`},
		"string":              {`{"context": {"fileName": "MY.md"}, "a": 1}`, `1`, `2`, `{"context": {"fileName": "MY.md"}, "a": 2}`},
		"string and more":     {`{"context": {"fileName": "MY.md"}}`, `"AGENTS.md"`, `"AGENTS.md", "x"`, `{"context": {"fileName": ["MY.md", "x"]}}`},
		"entry gone":          {`{"context": {"fileName": ["MY.md"]}}`, `, "AGENTS.md"`, ``, `{"context": {"fileName": ["MY.md"]}}`},
		"list gone":           {`{"a": 1}`, `"context": {"fileName": ["GEMINI.md", "AGENTS.md"]}, `, ``, `{"a": 1}`},
		"comma at the end":    {"{\n  \"a\": 1,\n}", `"a"`, `"b"`, "{\n  \"b\": 1\n}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, file := settings(t, test.content)
			must(t, w.AddToJSON(list))
			added := read(t, file)
			edited := strings.Replace(added, test.old, test.new, 1)
			if strings.HasPrefix(test.old, "\n}") { // the last one
				edited = strings.TrimSuffix(added, test.old) + test.new
			}
			if edited == added {
				t.Fatal("nothing was edited")
			}
			must(t, os.WriteFile(file, []byte(edited), 0o644), w.RemoveFromJSON(list))
			if diff := cmp.Diff(test.want, read(t, file)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTwoListsInOneFile(t *testing.T) {
	t.Parallel()
	other := instructions.JSONList{Path: list.Path, Keys: []string{"context", "more"}, Value: "x"}
	for name, content := range map[string]string{
		"neither": "{\n  \"a\": 1\n}\n", "one": `{"context": {"more": "y"}} // end` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, file := settings(t, content)
			must(t, w.AddToJSON(list), w.AddToJSON(other))
			both := read(t, file)
			must(t, w.AddToJSON(list), w.AddToJSON(other))
			if diff := cmp.Diff(both, read(t, file)); diff != "" {
				t.Errorf("adding them again: %s", diff)
			}
			must(t, w.RemoveFromJSON(list))
			if got := read(t, file); strings.Contains(got, "AGENTS.md") || !strings.Contains(got, `"x"`) {
				t.Errorf("content = %s", got)
			}
			must(t, w.RemoveFromJSON(other))
			if diff := cmp.Diff(content, read(t, file)); diff != "" {
				t.Errorf("restored: %s", diff)
			}
		})
	}
}
