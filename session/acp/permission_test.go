package acp_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

const (
	cancelled = `{"outcome":{"outcome":"cancelled"}}`
	asked     = `approval 1 t execute {"description":"ls"}`
)

func selected(option string) string {
	return `{"outcome":{"optionId":"` + option + `","outcome":"selected"}}`
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for decision, test := range map[engine.Decision]struct {
		cancel bool
		answer string
	}{
		engine.Accept:           {false, selected("o")},
		engine.AcceptForSession: {false, selected("a")},
		engine.Decline:          {false, selected("r")},
		engine.Cancel:           {true, cancelled},
	} {
		t.Run(string(decision), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &acp.Engine{}
				p, r := open(t, e, engine.Start{})
				prompt := send(t, e, p, "go")
				p.ask(0, "t")
				done := make(chan error)
				go func() { done <- e.Answer(t.Context(), <-r.requests, decision) }()
				if test.cancel {
					p.expect("session/cancel")
				}
				m := p.expect("")
				if string(*m.ID) != "0" || string(m.Result) != test.answer {
					t.Errorf("%s %s", *m.ID, m.Result)
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				for _, id := range []string{"1", "2"} {
					if err := e.Answer(t.Context(), id, engine.Accept); !errors.Is(err, engine.ErrTooLate) {
						t.Error(err)
					}
				}
				p.answer(prompt, `{"stopReason":"end_turn"}`)
				p.end()
				<-r.closed
				check(t, r, "session_started s", asked, "result")
			})
		})
	}
}

// decide returns what the agent hears of a decision when it offers options of
// some kinds.
func decide(t *testing.T, d engine.Decision, kinds ...string) (answer string, err error) {
	e := &acp.Engine{}
	p, r := open(t, e, engine.Start{})
	options := make([]string, len(kinds))
	for i, kind := range kinds {
		options[i] = `{"optionId":"` + kind + `","name":"","kind":"` + kind + `"}`
	}
	p.say(`{"jsonrpc":"2.0","id":"x","method":"session/request_permission","params":{"sessionId":"s","options":[%s],"toolCall":{"content":7}}}`, strings.Join(options, ","))
	done := make(chan error)
	go func() { done <- e.Answer(t.Context(), <-r.requests, d) }()
	m := p.expect("")
	err = <-done
	p.end()
	<-r.closed
	return string(m.Result), err
}

func TestAnswersWithoutTheirOption(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if got, err := decide(t, engine.AcceptForSession, "reject_once", "allow_once"); got != selected("allow_once") || err != nil {
			t.Error(got, err)
		}
		if got, err := decide(t, engine.Accept, "reject_once", "allow_always"); got != cancelled || err == nil {
			t.Error(got, err)
		}
		if got, err := decide(t, engine.Decline, "reject_always", "allow_once"); got != cancelled || err == nil {
			t.Error(got, err)
		}
	})
}

func TestApprovalRequestsThatAreNotAnswered(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(e *acp.Engine, p *peer, prompt message)
		want []string
	}{
		"interrupt": {func(e *acp.Engine, p *peer, prompt message) {
			go e.Interrupt(context.Background())
			p.expect("session/cancel")
			for range 2 {
				if m := p.expect(""); string(m.Result) != cancelled {
					t.Error(string(m.Result))
				}
			}
			p.answer(prompt, `{"stopReason":"cancelled"}`)
		}, []string{"result failed interrupted"}},
		"the turn ends": {func(_ *acp.Engine, p *peer, prompt message) {
			p.answer(prompt, `{"stopReason":"end_turn"}`)
			p.expect("")
			p.expect("")
		}, []string{"result"}},
		"the agent withdraws them": {func(_ *acp.Engine, p *peer, prompt message) {
			for id := range 2 {
				p.say(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%d}}`, id)
				if m := p.expect(""); !strings.Contains(string(m.Error), "-32800") {
					t.Error(string(m.Error))
				}
			}
			p.answer(prompt, `{"stopReason":"end_turn"}`)
		}, []string{"result"}},
		"the agent ends": {func(_ *acp.Engine, p *peer, _ message) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &acp.Engine{}
				p, r := open(t, e, engine.Start{})
				prompt := send(t, e, p, "go")
				p.ask(0, "t")
				p.ask(1, "t")
				<-r.requests
				<-r.requests
				test.end(e, p, prompt)
				synctest.Wait()
				p.end()
				<-r.closed
				want := append([]string{"session_started s", asked, strings.Replace(asked, "1", "2", 1), "answered 1", "answered 2"}, test.want...)
				got := strings.Split(r.String(), "\n")
				slices.Sort(got) // they can come before the end of the turn or after it
				slices.Sort(want)
				checkText(t, lines(got...), lines(want...))
			})
		})
	}
}

func TestRequestsThatAreNotUnderstood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, r := open(t, &acp.Engine{}, engine.Start{})
		for request, want := range map[string]string{
			`"method":"fs/read_text_file","params":{"sessionId":"s","path":"/etc/passwd"}`: "-32601",
			`"method":"terminal/create","params":{}`:                                       "-32601",
			`"method":"vendor/ask"`:                                                        "-32601",
			`"method":"session/request_permission","params":7`:                             "-32602",
		} {
			p.say(`{"jsonrpc":"2.0","id":0,%s}`, request)
			if m := p.expect(""); !strings.Contains(string(m.Error), want) {
				t.Errorf("%s: %s", request, m.Error)
			}
		}
		p.say(`{"jsonrpc":"2.0","method":"session/request_permission","params":{"options":[],"toolCall":{}}}`) // that wants no answer
		p.say(`{"jsonrpc":"2.0","method":"vendor/reports"}`)
		p.end()
		<-r.closed
		if got := strings.Count(r.String(), "\nraw {"); got != 6 {
			t.Error(r)
		}
	})
}

// TestApprovalRequestsThatAnAccessIncludes are answered without asking the user.
func TestApprovalRequestsThatAnAccessIncludes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &acp.Engine{
			Modes: map[agent.Access]string{agent.AccessRead: "plan", agent.AccessFull: "default"},
			Permits: func(access agent.Access, kind string) bool {
				return access == agent.AccessFull && kind == "execute"
			},
		}
		p, r := open(t, e, engine.Start{})
		mode := func(access agent.Access) {
			done := make(chan error)
			go func() { done <- e.SetAccess(t.Context(), access) }()
			p.answer(p.expect("session/set_mode"), "{}")
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		hears := func(want string) {
			t.Helper()
			if m := p.expect(""); string(m.Result) != want {
				t.Errorf("the agent hears %s, want %s", m.Result, want)
			}
		}
		mode(agent.AccessFull)
		prompt := send(t, e, p, "go")
		p.ask(0, "t")
		hears(selected("o"))
		p.update(`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`)
		p.answer(prompt, `{"stopReason":"end_turn"}`)
		synctest.Wait()

		mode(agent.AccessRead)
		prompt = send(t, e, p, "go")
		p.ask(0, "u")
		go e.Answer(t.Context(), <-r.requests, engine.Decline)
		hears(selected("r"))
		p.answer(prompt, `{"stopReason":"end_turn"}`)
		synctest.Wait()

		mode(agent.AccessFull)
		prompt = send(t, e, p, "go")
		go e.Interrupt(t.Context())
		p.expect("session/cancel")
		p.ask(0, "v")
		hears(cancelled)
		p.answer(prompt, `{"stopReason":"cancelled"}`)
		p.end()
		<-r.closed
		check(t, r, "session_started s", `tool_call t execute {"description":"ls"}`, "tool_result t failed=false", "result",
			strings.Replace(asked, " t ", " u ", 1), "result", "result failed interrupted")
	})
}

// An approval request can leave out what the agent has reported about the call.
func TestApprovalRequestWithoutAKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &acp.Engine{Permits: func(access agent.Access, kind string) bool { return access == agent.AccessWrite && kind == "edit" }}
		p, r := open(t, e, engine.Start{Workdir: "/work", Access: agent.AccessWrite})
		prompt := send(t, e, p, "go")
		for i, c := range []struct{ id, kind, file, want string }{
			{"t", "edit", "/work/new", selected("o")},
			{"u", "execute", "/work/new", selected("r")},
			{"v", "edit", "/other/new", selected("r")},
		} {
			p.update(`{"sessionUpdate":"tool_call","toolCallId":"` + c.id + `","kind":"` + c.kind + `","status":"pending"}`)
			p.say(`{"jsonrpc":"2.0","id":%d,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"%s",`+
				`"title":"Write","rawInput":{"file_path":"%s"}},"options":[{"optionId":"o","kind":"allow_once"},{"optionId":"r","kind":"reject_once"}]}}`, i, c.id, c.file)
			if c.want == selected("r") {
				go e.Answer(t.Context(), <-r.requests, engine.Decline)
			}
			if m := p.expect(""); string(m.Result) != c.want {
				t.Errorf("%s of %s: %s", c.kind, c.file, m.Result)
			}
		}
		p.answer(prompt, `{"stopReason":"end_turn"}`)
		p.end()
		<-r.closed
	})
}
