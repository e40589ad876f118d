package streamjson_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/policy"
)

// What a policy decides reaches the agent as an answer of the user does, and what it
// leaves reaches the user.
func TestPolicy(t *testing.T) {
	t.Parallel()
	for command, test := range map[string]struct{ want, asked string }{
		"ls":  {`{"behavior":"allow","updatedInput":{"command":"ls"}}`, ""},
		"cat": {`"behavior":"deny"`, ""},
		"go":  {`"behavior":"deny"`, "1"},
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := newEngine()
				e.Describe = func(tool *agent.Tool, start engine.Start) {
					tool.Kind, tool.Command = agent.ToolExecute, start.Command(tool.Input)
				}
				asked := ""
				o := session.Options{
					Policy: &policy.Policy{Rules: []policy.Rule{{Command: []string{"ls"}, Decision: policy.Accept}, {Command: []string{"cat"}, Decision: policy.Decline}}},
					Approve: func(_ context.Context, a session.Approval) session.Decision {
						asked += a.ID
						return session.Decline
					},
				}
				s, peer := playsTo(t, e, o, expect(userLine), say(strings.Replace(request, `"command":"ls"`, `"command":"`+command+`"`, 1)),
					expect(`{"type":"control_response","response":{"subtype":"success","request_id":"q1"}}`), say(result))
				if _, err := s.Send(session.Message{Text: "go"}).Wait(t.Context()); err != nil {
					t.Error(err)
				}
				if got := last(peer.Sent()); !strings.Contains(got, test.want) || asked != test.asked {
					t.Errorf("the agent gets %s, the user is asked %q", got, asked)
				}
			})
		})
	}
}
