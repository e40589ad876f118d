package appserver

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
)

// reported returns the changes of the event for a notification.
func reported(t *testing.T, line []byte) []agent.FileChange {
	t.Helper()
	var n struct {
		Method string
		Params json.RawMessage
	}
	if err := json.Unmarshal(line, &n); err != nil {
		t.Fatal(err)
	}
	events := new(decoder).events(Notification{n.Method, n.Params}, "", "")
	if len(events) != 1 || events[0].Kind != agent.KindFileChange {
		t.Fatalf("%+v", events)
	}
	return events[0].Changes
}

// The recorded changes of a patch are the hunks of a unified diff.
func TestFileChangesHaveDiffs(t *testing.T) {
	t.Parallel()
	line, err := os.ReadFile("testdata/file-changes.json")
	if err != nil {
		t.Fatal(err)
	}
	want := []agent.FileChange{
		{Path: "/srv/project/added.txt", Action: "add", Diff: "@@ -0,0 +1,2 @@\n+one\n+two\n"},
		{Path: "/srv/project/from.txt", Action: "update", Diff: "@@ -1,2 +1,2 @@\n-m\n+n\n k\n"},
		{Path: "/srv/project/to.txt", Action: "add"},
		{Path: "/srv/project/gone.txt", Action: "delete", Diff: "@@ -1,1 +0,0 @@\n-bye\n"},
		{Path: "/srv/project/old.txt", Action: "update", Diff: "@@ -1,3 +1,3 @@\n x\n-a\n+b\n y\n"},
	}
	if diff := cmp.Diff(want, reported(t, line)); diff != "" {
		t.Error(diff)
	}
}

func TestDiffOfAWholeFile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x\n", 1<<20)
	for text, want := range map[string]agent.FileChange{
		"":         {},
		"a\nb":     {Diff: "@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"},
		"\n":       {Diff: "@@ -0,0 +1,1 @@\n+\n"},
		"a" + long: {Diff: "@@ -0,0 +1,1048576 @@\n+ax\n" + strings.Repeat("+x\n", (agent.MaxDiff-len("@@ -0,0 +1,1048576 @@\n+ax\n"))/3), Truncated: true},
	} {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		want.Path, want.Action = "/f", "add"
		got := reported(t, []byte(`{"method":"item/completed","params":{"item":{"type":"fileChange","id":"f","changes":[{"path":"/f","kind":{"type":"add"},"diff":`+string(quoted)+`}]}}}`))
		if diff := cmp.Diff([]agent.FileChange{want}, got); diff != "" {
			t.Errorf("%.10q: %.500s", text, diff)
		}
	}
}
