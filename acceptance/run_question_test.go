//go:build acceptance

package acceptance

import (
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
)

// A run has no user to ask: the model does not get the tool, and the run continues.
func TestRunAsksNoQuestion(t *testing.T) {
	t.Parallel()
	call := modeltest.ToolCall{Name: "AskUserQuestion", Arguments: `{"questions":[{"question":"Which way?","header":"Way","multiSelect":false,` +
		`"options":[{"label":"left","description":"shorter"},{"label":"right","description":"longer"}]}]}`}
	for _, access := range agent.Accesses() {
		t.Run(string(access), func(t *testing.T) {
			t.Parallel()
			w := newClaude(t, modeltest.Replies(modeltest.Reply{call}, answer("left, then")), nil)
			r, o := w.run("where to?", "--access", string(access))
			w.wantAnswer("left, then", r, o)
			got := w.wantRequests(2)[1].ToolResults()
			if len(got) != 1 || strings.Contains(got[0].Output, "answered") {
				t.Errorf("the model gets %+v", got)
			}
			t.Logf("the model gets %+v", got)
		})
	}
}
