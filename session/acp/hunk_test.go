package acp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

func TestHunk(t *testing.T) {
	t.Parallel()
	const end = "\\ No newline at end of file\n"
	for name, c := range map[string]struct{ before, after, want string }{
		"equal":                {"a\nb\n", "a\nb\n", ""},
		"all":                  {"a\n", "b\n", "@@ -1,1 +1,1 @@\n-a\n+b\n"},
		"in the middle":        {"1\n2\n3\n4\nx\n6\n7\n8\n9\n", "1\n2\n3\n4\ny\nz\n6\n7\n8\n9\n", "@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-x\n+y\n+z\n 6\n 7\n 8\n"},
		"lines are added":      {"a\nb\n", "a\nc\nb\n", "@@ -1,2 +1,3 @@\n a\n+c\n b\n"},
		"a line is repeated":   {"a\na\n", "a\na\na\n", "@@ -1,2 +1,3 @@\n a\n a\n+a\n"},
		"a repeated line goes": {"a\na\na\n", "a\na\n", "@@ -1,3 +1,2 @@\n a\n a\n-a\n"},
		"the end of the line":  {"a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n" + end + "+b\n"},
		"no end of the line":   {"x\nb", "y\nb", "@@ -1,2 +1,2 @@\n-x\n+y\n b\n" + end},
		"from nothing":         {"", "a\n", "@@ -0,0 +1,1 @@\n+a\n"},
		"to nothing":           {"a\n", "", "@@ -1,1 +0,0 @@\n-a\n"},
	} {
		if got := hunk(c.before, c.after); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	long := hunk("", strings.Repeat("x\n", 1<<20))
	if len(long) <= agent.MaxDiff || len(long) > agent.MaxDiff+10 {
		t.Errorf("of a long text: %d bytes", len(long))
	}
}

func TestChangesHaveDiffs(t *testing.T) {
	t.Parallel()
	var of tool
	if err := json.Unmarshal([]byte(`[
		{"type":"diff","path":"/a","oldText":"x\n","newText":"y\n"},
		{"type":"diff","path":"/b","oldText":null,"newText":"y\n"},
		{"type":"diff","path":"/c","oldText":"x\n","newText":""},
		{"type":"content","content":{"type":"text","text":"done"}}]`), &of.pieces); err != nil {
		t.Fatal(err)
	}
	want := []agent.FileChange{
		{Path: "/a", Action: "update", Diff: "@@ -1,1 +1,1 @@\n-x\n+y\n"},
		{Path: "/b", Action: "add", Diff: "@@ -0,0 +1,1 @@\n+y\n"},
		{Path: "/c", Action: "delete", Diff: "@@ -1,1 +0,0 @@\n-x\n"},
	}
	if diff := cmp.Diff(want, of.changes()); diff != "" {
		t.Error(diff)
	}
}

func TestModelsAreBounded(t *testing.T) {
	t.Parallel()
	group := `{"options":[` + strings.Repeat(`{"value":"m"},`, engine.MaxModels) + `{"value":"m"}]}`
	if got := len(modelsIn(json.RawMessage("[" + group + "," + group + "]"))); got != engine.MaxModels {
		t.Errorf("%d models, want %d", got, engine.MaxModels)
	}
}
