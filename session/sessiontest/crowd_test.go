package sessiontest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/appserver"
	"github.com/busdk/bus-agent/backends/claude"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
	"github.com/busdk/bus-agent/session/streamjson"
)

// A dialect is how an engine and its agent talk: the lines of the agent in a
// conversation that begins with a request for permission.
type dialect struct {
	engine   func() engine.Engine
	greeting []sessiontest.Step
	// turn is the n-th turn, counted from 0, with an answer.
	turn func(n int, answer string) []sessiontest.Step
	// request is asked, and answered with yes, in the first one.
	request, yes string
}

func dialects() map[string]dialect {
	const greet, initialize = `{"type":"control_request","request_id":"r","request":{"subtype":"initialize"}}`, `{"id":1,"method":"initialize"}`
	return map[string]dialect{
		"appserver": {
			engine: func() engine.Engine { return &appserver.Engine{} },
			greeting: []sessiontest.Step{
				expect(initialize), say(`{"id":1,"result":{}}`), expect(`{"method":"initialized"}`),
				expect(`{"id":2,"method":"thread/start"}`), say(`{"id":2,"result":{"thread":{"id":"t"},"model":"m"}}`),
			},
			turn: func(n int, answer string) []sessiontest.Step {
				return []sessiontest.Step{
					expect(fmt.Sprintf(`{"id":%d,"method":"turn/start"}`, n+3)), say(fmt.Sprintf(`{"id":%d,"result":{"turn":{"id":"%d"}}}`, n+3, n)),
					say(fmt.Sprintf(`{"method":"item/agentMessage/delta","params":{"threadId":"t","turnId":"%d","itemId":"i%d","delta":%q}}`, n, n, answer)),
					say(fmt.Sprintf(`{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"%d","status":"completed"}}}`, n)),
				}
			},
			request: `{"id":"q","method":"item/commandExecution/requestApproval","params":{"threadId":"t","command":"ls"}}`,
			yes:     `{"id":"q","result":{"decision":"accept"}}`,
		},
		"streamjson": {
			engine: func() engine.Engine { return &streamjson.Engine{Decoder: claude.Runtime().Decoder} },
			greeting: []sessiontest.Step{
				expect(greet), say(`{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{}}}`),
			},
			turn: func(n int, answer string) []sessiontest.Step {
				return []sessiontest.Step{
					expect(`{"type":"user"}`),
					say(fmt.Sprintf(`{"type":"assistant","message":{"id":"m%d","content":[{"type":"text","text":%q}]}}`, n, answer)),
					say(`{"type":"result","subtype":"success","is_error":false}`),
				}
			},
			request: `{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}`,
			yes:     `{"type":"control_response","response":{"subtype":"success","request_id":"q","response":{"behavior":"allow"}}}`,
		},
		"acp": {
			engine: func() engine.Engine { return &acp.Engine{} },
			greeting: []sessiontest.Step{
				expect(initialize), say(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`),
				expect(`{"id":2,"method":"session/new"}`), say(`{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}`),
			},
			turn: func(n int, answer string) []sessiontest.Step {
				return []sessiontest.Step{
					expect(fmt.Sprintf(`{"id":%d,"method":"session/prompt"}`, n+3)),
					say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}}`, answer)),
					say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}`, n+3)),
				}
			},
			request: `{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"o","name":"O","kind":"allow_once"}],"toolCall":{"toolCallId":"u","title":"ls"}}}`,
			yes:     `{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"o"}}}`,
		},
	}
}

// script is the agent's side of turns in which it answers so.
func (d dialect) script(answers []string) []sessiontest.Step {
	steps := slices.Clone(d.greeting)
	for n, answer := range answers {
		turn := d.turn(n, answer)
		if n == 0 {
			turn = slices.Insert(turn, len(turn)-2, say(d.request), expect(d.yes))
		}
		steps = append(steps, turn...)
	}
	return steps
}

// The crowd is a number of sessions, and of messages in each.
const (
	crowd    = 200
	messages = 5
)

// member is one session of the crowd.
type member struct {
	session *session.Session
	peer    *sessiontest.Peer
	mu      sync.Mutex
	heard   strings.Builder // all text, in order
}

// TestCrowd has 200 sessions in one process, all in the middle of a turn at the
// same time. No message is lost, each answer reaches its own turn, and nothing is
// left of them.
func TestCrowd(t *testing.T) {
	t.Parallel()
	left := sessiontest.Leaks(func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var asked, done sync.WaitGroup // once all ask, all are answered
		asked.Add(crowd)
		languages := dialects()
		names := slices.Sorted(maps.Keys(languages))
		for i := range crowd {
			name := names[i%len(names)]
			done.Go(func() { converse(ctx, t, fmt.Sprint(name, " ", i), languages[name], &asked) })
		}
		done.Wait()
	})
	if left != "" {
		t.Errorf("goroutines are left:\n%s", left)
	}
}

// converse is a whole session.
func converse(ctx context.Context, t *testing.T, name string, d dialect, asked *sync.WaitGroup) {
	var answers []string
	for n := range messages {
		answers = append(answers, fmt.Sprintf("answer %d of %s. ", n, name))
	}
	m := &member{peer: sessiontest.Start(d.script(answers))}
	var err error
	m.session, err = session.Open(ctx, "test", d.engine(), m.peer, m.peer.Transport(), engine.Start{}, session.Options{
		Events: func(e *agent.Event) error {
			if e.Kind == agent.KindText {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.heard.WriteString(e.Text)
			}
			return nil
		},
		Approve: func(context.Context, session.Approval) engine.Decision {
			asked.Done()
			asked.Wait()
			return engine.Accept
		},
	})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		asked.Done()
		return
	}
	defer m.session.Stop(context.Background(), "")
	var turns []*session.Turn
	for n := range messages {
		turns = append(turns, m.session.Send(session.Message{Text: fmt.Sprintf("message %d to %s.", n, name)}))
	}
	for n, turn := range turns {
		if result, err := turn.Wait(ctx); err != nil || result.Text != answers[n] {
			t.Errorf("%s: message %d is answered %q, %v", name, n, result.Text, err)
		}
	}
	m.check(t, name, answers)
}

// check compares what was heard on both sides.
func (m *member) check(t *testing.T, name string, answers []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if all := strings.Join(answers, ""); m.heard.String() != all {
		t.Errorf("%s: heard is %q", name, m.heard.String())
	}
	n := 0
	for _, line := range m.peer.Sent() {
		if strings.Contains(line, "message ") {
			if !strings.Contains(line, fmt.Sprintf("message %d to %s.", n, name)) {
				t.Errorf("%s: message %d is %s", name, n, line)
			}
			n++
		}
	}
	if n != messages {
		t.Errorf("%s: %d messages arrived", name, n)
	}
}
