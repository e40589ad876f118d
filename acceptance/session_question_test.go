//go:build acceptance

package acceptance

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

// A question of the model reaches the user with its options, and the answer reaches the
// model, whatever the access.
func TestSessionQuestions(t *testing.T) {
	t.Parallel()
	options := []agent.Option{{Label: "left", Description: "shorter"}, {Label: "right", Description: "longer"}}
	claude := modeltest.ToolCall{Name: "AskUserQuestion", Arguments: `{"questions":[{"question":"Which way?","header":"Way","multiSelect":false,` +
		`"options":[{"label":"left","description":"shorter"},{"label":"right","description":"longer"}]}]}`}
	codex := modeltest.ToolCall{Name: "request_user_input", Arguments: `{"questions":[{"id":"way","question":"Which way?","header":"Way",` +
		`"options":[{"label":"left","description":"shorter"},{"label":"right","description":"longer"}]}]}`}
	for name, tt := range map[string]struct {
		setup  setupFunc
		call   modeltest.ToolCall
		access agent.Access
		args   []string
	}{
		"claude":             {newClaude, claude, agent.AccessWrite, nil},
		"claude, all access": {newClaude, claude, agent.AccessFull, nil},
		"codex":              {newCodex, codex, agent.AccessWrite, []string{"--enable", "default_mode_request_user_input"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := tt.setup(t, modeltest.Replies(
				modeltest.Reply{tt.call}, answer("thanks"),
				modeltest.Reply{tt.call}, answer("a pity")), nil)
			var asked []session.QuestionRequest
			answers := [][][]string{{{"right"}}, {}}
			ask := func(_ context.Context, q session.QuestionRequest) [][]string {
				asked = append(asked, q)
				return answers[len(asked)-1]
			}
			d := w.startSession(session.Options{Ask: ask}, func(r *agent.Request) { r.Access, r.Args = tt.access, append(r.Args, tt.args...) })
			d.sendWant("where to?", "thanks")
			d.sendWant("and now?", "a pity")
			if len(asked) != 2 {
				t.Fatalf("asked %+v", asked)
			}
			want := []agent.Question{{Header: "Way", Text: "Which way?", Options: options, FreeText: true}}
			if diff := cmp.Diff(want, asked[0].Questions); diff != "" {
				t.Error(diff)
			}
			requests := w.wantRequests(4)
			for i, want := range []string{"right", ""} {
				got := requests[1+2*i].ToolResults()
				if output := got[len(got)-1].Output; !strings.Contains(output, want) || want == "" && strings.Contains(output, "right") {
					t.Errorf("the model gets %q, want %q", output, want)
				}
				t.Logf("the model gets %q", got[len(got)-1].Output)
			}
			d.stop()
		})
	}
}
