package acp

import (
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
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
