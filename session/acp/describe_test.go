package acp_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/policy"
)

// asks returns the tool of the event for a request with a tool call.
func asks(t *testing.T, e *acp.Engine, before, toolCall string) (tool *agent.Tool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p, r := open(t, e, engine.Start{Workdir: "/w"})
		prompt := send(t, e, p, "go")
		if before != "" {
			p.update(before)
		}
		p.say(`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"o","name":"","kind":"allow_once"},{"optionId":"n","name":"","kind":"reject_once"}],"toolCall":%s}}`, toolCall)
		id := <-r.requests
		r.mu.Lock()
		tool = r.asked
		r.mu.Unlock()
		if err := e.Answer(t.Context(), id, engine.Decline); err != nil {
			t.Error(err)
		}
		p.expect("")
		p.answer(prompt, `{"stopReason":"end_turn"}`)
		p.end()
		<-r.closed
	})
	return tool
}

// What a request would allow is in the terms of all runtimes, and empty where it is not
// known completely.
func TestRequestsAreDescribed(t *testing.T) {
	t.Parallel()
	title := func(title, _ string, _ engine.Start) string { return title }
	for _, test := range []struct{ before, call, want string }{
		{"", `{"toolCallId":"t","kind":"execute","rawInput":{"command":"ls"}}`, "execute ls "},
		{"", `{"toolCallId":"t","kind":"execute","rawInput":{"command":"ls","cwd":"/"}}`, "execute  "},
		{"", `{"toolCallId":"t","kind":"execute","title":"ls"}`, "execute ls "},
		{"", `{"toolCallId":"t","rawInput":{"command":"ls"}}`, "execute ls "},
		{"", `{"toolCallId":"t","kind":"other","rawInput":{"cmd":"ls"}}`, "execute  "},
		{"", `{"toolCallId":"t","kind":"other","title":"ls"}`, "other  "},
		{"", `{"toolCallId":"t","kind":"switch_mode","title":"yolo"}`, "  "},
		{"", `{"toolCallId":"t","kind":"new","title":"x"}`, "  "},
		{"", `{"toolCallId":"t","kind":"edit","locations":[{"path":"/w/b"}],"content":[{"type":"diff","path":"/w/a"}]}`, "edit  /w/a /w/b"},
		{"", `{"toolCallId":"t","kind":"edit","locations":[{"path":""}]}`, "edit  "},
		{"", `{"toolCallId":"t","kind":"move","rawInput":{"from":"/w/a","to":"/b"}}`, "delete  /b /w/a"},
		{"", `{"toolCallId":"t","kind":"search","rawInput":{"path":"/w"}}`, "read  /w"},
		{"", `{"toolCallId":"t","kind":"fetch","rawInput":{"url":"http://x"}}`, "fetch  "},
		{`{"sessionUpdate":"tool_call","toolCallId":"t","kind":"edit","locations":[{"path":"/etc/x"}]}`, `{"toolCallId":"t","locations":[{"path":"/w/a"}]}`, "edit  /etc/x /w/a"},
		{`{"sessionUpdate":"tool_call","toolCallId":"t","kind":"edit","status":"completed","locations":[{"path":"/w/a"}]}`, `{"toolCallId":"t","locations":[{"path":"/w/a"}]}`, "edit  "},
	} {
		tool := asks(t, &acp.Engine{Command: title}, test.before, test.call)
		if got := string(tool.Kind) + " " + tool.Command + " " + strings.Join(tool.Files, " "); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.before, test.call, got, test.want)
		}
	}
	if tool := asks(t, &acp.Engine{}, "", `{"toolCallId":"t","kind":"execute","title":"ls"}`); tool.Command != "" {
		t.Errorf("the title is taken for the command: %q", tool.Command)
	}
}

// What a policy decides reaches the agent as an answer of the user does, and what it
// leaves reaches the user.
func TestPolicy(t *testing.T) {
	t.Parallel()
	for command, test := range map[string]struct{ want, asked string }{
		"ls":  {selected("o"), ""},
		"cat": {selected("r"), ""},
		"go":  {selected("r"), "1"},
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, transport := newPeer(t)
				go p.greet()
				asked := ""
				o := session.Options{
					Policy: &policy.Policy{Rules: []policy.Rule{{Command: []string{"ls"}, Decision: policy.Accept}, {Command: []string{"cat"}, Decision: policy.Decline}}},
					Approve: func(_ context.Context, a session.Approval) session.Decision {
						asked += a.ID
						return session.Decline
					},
				}
				e := &acp.Engine{Command: func(string, string, engine.Start) string { return command }}
				process := &ending{done: make(chan struct{})}
				s, err := session.Open(t.Context(), "test", e, process, transport, engine.Start{}, o)
				if err != nil {
					t.Fatal(err)
				}
				turn := s.Send(session.Message{Text: "go"})
				prompt := p.expect("session/prompt")
				p.ask(0, "t")
				if m := p.expect(""); string(m.Result) != test.want || asked != test.asked {
					t.Errorf("the agent gets %s, the user is asked %q", m.Result, asked)
				}
				p.answer(prompt, `{"stopReason":"end_turn"}`)
				if _, err := turn.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				p.end()
				process.Stop()
				s.Stop(context.Background(), "")
			})
		})
	}
}

// ending is the process of an agent.
type ending struct {
	once sync.Once
	done chan struct{}
}

func (e *ending) Stop()                 { e.once.Do(func() { close(e.done) }) }
func (e *ending) Done() <-chan struct{} { return e.done }
