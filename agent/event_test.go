package agent_test

import (
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
)

// A diff that is too long keeps its first lines, all of them whole.
func TestSetDiffKeepsWholeLines(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("+23\n", agent.MaxDiff/4)
	for name, test := range map[string]struct {
		hunks, want string
		truncated   bool
	}{
		"empty":                   {"", "", false},
		"without line break":      {"+a", "+a", false},
		"the longest allowed":     {full, full, false},
		"a line more":             {full + "-\n", full, true},
		"a line that is too long": {"+a\n+" + full[:agent.MaxDiff-4] + "secret", "+a\n+" + full[:agent.MaxDiff-4], true},
		"one long line":           {"+" + strings.Repeat("x", agent.MaxDiff), "", true},
	} {
		c := agent.FileChange{Diff: "before", Truncated: true}
		c.SetDiff(test.hunks)
		if c.Diff != test.want || c.Truncated != test.truncated {
			t.Errorf("%s: %d bytes, truncated %v; want %d, %v", name, len(c.Diff), c.Truncated, len(test.want), test.truncated)
		}
	}
}
