package streamjson_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
	"github.com/busdk/bus-agent/session/streamjson"
)

// Lines of an agent.
const (
	userLine = `{"type":"user"}`
	one      = `{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"one"}]},"uuid":"1"}`
	two      = `{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"two"}]},"uuid":"2"}`
	result   = `{"type":"result","subtype":"success","is_error":false,"result":"","uuid":"3"}`
	failure  = `{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["[diagnostic]"],"uuid":"4"}`
	request  = `{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"u1","decision_reason":"why","permission_suggestions":` +
		`[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls"}],"behavior":"allow","destination":"localSettings"},{"type":"setMode","mode":"acceptEdits","destination":"session"},{"type":"addRules","rules":[],"behavior":"deny","destination":"session"},{"type":"replaceRules","rules":[],"behavior":"allow","destination":"session"}]}}`
)

// plays opens a session on a peer with steps.
func plays(t *testing.T, o session.Options, steps ...sessiontest.Step) (*session.Session, *sessiontest.Peer) {
	t.Helper()
	return playsTo(t, newEngine(), o, steps...)
}

// playsTo does so with an engine.
func playsTo(t *testing.T, e *streamjson.Engine, o session.Options, steps ...sessiontest.Step) (*session.Session, *sessiontest.Peer) {
	t.Helper()
	peer := sessiontest.Start(append(greeting(), steps...))
	s, err := session.Open(t.Context(), "test", e, peer, peer.Transport(), engine.Start{SlashCommands: true}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop(context.Background(), "") })
	return s, peer
}

func last(lines []string) string { return lines[len(lines)-1] }

func TestDecisions(t *testing.T) {
	t.Parallel()
	const begin = `{"type":"control_response","response":{"subtype":"success","request_id":"q1","response":`
	for _, test := range []struct {
		name     string
		decision engine.Decision // empty: no answer
		want     string
	}{
		{"accept", engine.Accept, begin + `{"behavior":"allow","updatedInput":{"command":"ls"}}}}`},
		{"accept for the session", engine.AcceptForSession, begin + `{"behavior":"allow","updatedInput":{"command":"ls"},"updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls"}],"behavior":"allow","destination":"session"}]}}}`},
		{"decline", engine.Decline, begin + `{"behavior":"deny","message":"The user declines."}}}`},
		{"cancel", engine.Cancel, begin + `{"behavior":"deny","message":"The user wants the turn to end.","interrupt":true}}}`},
		{"an unknown decision", "yes", begin + `{"behavior":"deny","message":"The user declines."}}}`},
		{"no answer", "", begin + `{"behavior":"deny","message":"The user declines."}}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := session.Options{ApprovalTimeout: time.Minute}
				if test.decision != "" {
					o.Approve = func(_ context.Context, a session.Approval) engine.Decision {
						if a.ID != "1" || a.Tool.ID != "u1" || a.Tool.Name != "Bash" || string(a.Tool.Input) != `{"command":"ls"}` || a.Reason != "why" {
							t.Errorf("%+v", a)
						}
						return test.decision
					}
				}
				end := result
				if test.decision == engine.Cancel {
					end = failure
				}
				s, peer := plays(t, o, expect(userLine), say(request), expect(test.want), say(end))
				begun := time.Now()
				_, err := s.Send(session.Message{Text: "go"}).Wait(t.Context())
				if test.decision == engine.Cancel && (!errors.Is(err, agent.ErrCanceled) || err.Error() != "test: the turn was interrupted") || test.decision != engine.Cancel && err != nil {
					t.Error(err)
				}
				if got := last(peer.Sent()); got != test.want {
					t.Errorf("answered %s", got)
				}
				if took := time.Since(begun); test.decision == "" && took != time.Minute {
					t.Errorf("declined after %v", took)
				}
			})
		})
	}
}

// TestApprovalRequestsThatAreNotUnderstood are asked all the same: the agent waits.
func TestApprovalRequestsThatAreNotUnderstood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		odd := `{"type":"control_request","request_id":"q2","request":{"subtype":"can_use_tool","permission_suggestions":"none"}}`
		want := `{"type":"control_response","response":{"subtype":"success","request_id":"q2","response":{"behavior":"allow"}}}`
		o := session.Options{Approve: func(context.Context, session.Approval) engine.Decision { return engine.AcceptForSession }}
		s, peer := plays(t, o, expect(userLine), say(odd), expect(want), say(result))
		if _, err := s.Send(session.Message{Text: "go", Timeout: time.Minute}).Wait(t.Context()); err != nil || last(peer.Sent()) != want {
			t.Errorf("%v, sent %s", err, last(peer.Sent()))
		}
	})
}

func TestApprovalRequestThatIsTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, peer := plays(t, session.Options{}, expect(userLine), say(request), expect(`{"type":"never"}`))
		s.Send(session.Message{Text: "go"})
		synctest.Wait()
		if len(s.Approvals()) != 1 {
			t.Errorf("%v", s.Approvals())
		}
		peer.Stop()
		synctest.Wait()

		s, _ = plays(t, session.Options{}, expect(userLine), say(request), say(`{"type":"control_cancel_request","request_id":"q1"}`))
		s.Send(session.Message{Text: "go"})
		synctest.Wait()
		if len(s.Approvals()) != 0 {
			t.Errorf("%v", s.Approvals())
		}
		if err := s.Answer(t.Context(), "1", engine.Accept); !errors.Is(err, engine.ErrTooLate) {
			t.Error(err)
		}
	})
}

// TestApprovalRequestsEndWithTheirTurn in the engine, too, and the agent gets an answer: a
// subagent that works on would wait for it.
func TestApprovalRequestsEndWithTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		want := `{"type":"control_response","response":{"subtype":"success","request_id":"q1","response":{"behavior":"deny","message":"The user declines."}}}`
		peer := sessiontest.Start(append(greeting(), expect(userLine), say(request), say(result), expect(want)))
		e := newEngine()
		s, err := session.Open(t.Context(), "test", e, peer, peer.Transport(), engine.Start{}, session.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop(context.Background(), "")
		<-s.Send(session.Message{Text: "go"}).Done()
		if err := e.Answer(t.Context(), "1", engine.Accept); !errors.Is(err, engine.ErrTooLate) {
			t.Error(err)
		}
		synctest.Wait()
		if got := last(peer.Sent()); got != want {
			t.Errorf("answered %s", got)
		}
	})
}

func TestOtherRequestsAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		want := `{"type":"control_response","response":{"subtype":"error","request_id":"h1","error":"not supported by this client: hook_callback"}}`
		_, peer := plays(t, session.Options{}, say(`{"type":"control_request","request_id":"h1","request":{"subtype":"hook_callback"}}`), expect(want))
		synctest.Wait()
		if got := last(peer.Sent()); got != want {
			t.Errorf("answered %s", got)
		}
	})
}

func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := plays(t, session.Options{}, expect(`{"type":"control_request","request_id":"m","request":{"subtype":"set_model"}}`),
			say(`{"type":"control_response","response":{"subtype":"error","request_id":"m","error":"no such model"}}`))
		if err := s.SetModel(t.Context(), "x"); err == nil || err.Error() != "the agent refuses: no such model" {
			t.Error(err)
		}
		if err := s.SetAccess(t.Context(), agent.AccessFull); !errors.Is(err, engine.ErrUnsupported) {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.SetModel(ctx, "y"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without an answer: %v", err)
		}
	})
}

// TestSteerIsTheNextTurn: before the messages that wait already.
func TestSteerIsTheNextTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, peer := plays(t, session.Options{}, expect(userLine), say(one), sessiontest.Step{Kind: sessiontest.Pause, For: time.Second}, say(result),
			expect(userLine), say(two), say(result), expect(userLine), say(result))
		first, queued := s.Send(session.Message{Text: "first"}), s.Send(session.Message{Text: "/queued"})
		synctest.Wait()
		steered := s.Steer(t.Context(), session.Message{Text: "steered"})
		for turn, want := range map[*session.Turn]string{first: "one", steered: "two", queued: ""} {
			if r, err := turn.Wait(t.Context()); err != nil || r.Text != want {
				t.Errorf("%+v, %v, want %q", r, err, want)
			}
		}
		const wrapped = `{"type":"user","message":{"role":"user","content":[{"type":"text","text":"%s"}]}}`
		sent := plain(peer.Sent())
		for i, text := range []string{"first", "steered", `\n/queued`} {
			if got := sent[1+i]; got != fmt.Sprintf(wrapped, text) {
				t.Errorf("sent %s", got)
			}
		}
	})
}

func TestOpenThatFails(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]sessiontest.Step{
		"dead":    {{Kind: sessiontest.Die}},
		"silent":  {expect(greeting()[0].Line)},
		"deaf":    {{Kind: sessiontest.Deafen}},
		"refuses": {expect(greeting()[0].Line), say(`{"type":"control_response","response":{"subtype":"error","request_id":"r1","error":"no"}}`)},
		"odd":     {expect(greeting()[0].Line), say(`{"type":"control_response","response":{"request_id":"r1"}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				peer := sessiontest.Start(steps)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				want := agent.ErrAgent
				if name == "silent" || name == "deaf" {
					want = agent.ErrTimeout
				}
				_, err := session.Open(ctx, "test", newEngine(), peer, peer.Transport(), engine.Start{}, session.Options{})
				if !errors.Is(err, want) {
					t.Errorf("%v", err)
				}
				<-peer.Done()
			})
		})
	}
}

// TestMessageThatWasGivenUpHalfWritten is not delivered, and when the agent gets
// it nevertheless, its turn is not taken for that of the next message.
func TestMessageThatWasGivenUpHalfWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		agentSide := sessiontest.Start(append(greeting(), expect(userLine), say(one), say(result), expect(userLine), say(two), say(result)))
		transport := agentSide.Transport()
		slow := &slowInput{WriteCloser: transport.Input, wait: make(chan struct{})}
		transport.Input = slow
		s, err := session.Open(t.Context(), "test", newEngine(), agentSide, transport, engine.Start{}, session.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop(context.Background(), "")
		slow.slow = true
		if _, err := s.Send(session.Message{Text: "given up", Timeout: time.Second}).Wait(t.Context()); !errors.Is(err, session.ErrNotDelivered) {
			t.Error(err)
		}
		next := s.Send(session.Message{Text: "next"})
		synctest.Wait()
		close(slow.wait)
		if r, err := next.Wait(t.Context()); err != nil || r.Text != "two" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// slowInput is an input that is not read for a while.
type slowInput struct {
	io.WriteCloser
	slow bool
	wait chan struct{}
}

func (s *slowInput) Write(p []byte) (int, error) {
	if s.slow {
		<-s.wait
	}
	return s.WriteCloser.Write(p)
}

func TestAgentThatDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := plays(t, session.Options{}, sessiontest.Step{Kind: sessiontest.Deafen},
			sessiontest.Step{Kind: sessiontest.Pause, For: 30 * time.Second}, say(`{"type":"control_request","request_id":"h1","request":{"subtype":"hook_callback"}}`))
		taken := s.Send(session.Message{Text: "into the pipe"})
		synctest.Wait()
		for _, call := range []func(context.Context) error{
			s.Interrupt,
			func(ctx context.Context) error { return s.SetModel(ctx, "m") },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		turn := s.Send(session.Message{Text: strings.Repeat("long ", 1000), Timeout: time.Minute})
		if _, err := turn.Wait(t.Context()); !errors.Is(err, session.ErrNotDelivered) || !errors.Is(err, agent.ErrTimeout) {
			t.Error(err)
		}
		begun := time.Now()
		s.Stop(t.Context(), "enough")
		if took := time.Since(begun); took > session.DefaultCloseGrace {
			t.Errorf("stopped after %v", took)
		}
		if _, err := taken.Wait(t.Context()); !errors.Is(err, agent.ErrCanceled) || errors.Is(err, session.ErrNotDelivered) {
			t.Error(err)
		}
	})
}
