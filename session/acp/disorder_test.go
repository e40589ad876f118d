package acp_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// essence returns the steps up to the end of the first turn, without those that
// are like many others.
func essence(steps []sessiontest.Step) []sessiontest.Step {
	var kept []sessiontest.Step
	for _, s := range steps {
		if !strings.Contains(s.Line, `"text":"word`) || strings.Contains(s.Line, `"text":"word0`) || strings.Contains(s.Line, `"text":"word1`) {
			kept = append(kept, s)
		}
		if s.Kind == sessiontest.Say && strings.Contains(s.Line, `"stopReason"`) {
			break
		}
	}
	return kept
}

func TestHostileAgentFaultsAtEveryStep(t *testing.T) {
	t.Parallel()
	const resumed = "4dc184e0-9b34-4fd3-b182-1472d3f3ba51"
	interrupt := func(ctx context.Context, s *session.Session) error { return s.Interrupt(ctx) }
	for name, test := range map[string]struct {
		start engine.Start
		call  func(context.Context, *session.Session) error
		want  string // how the first message ends
	}{
		"perm-allow":        {engine.Start{}, nil, `"DONE after tool" <nil>`},
		"cancel-stream":     {engine.Start{}, interrupt, `"word0 word1 " test: the turn was interrupted`},
		"load-nextminute-b": {engine.Start{Resume: resumed}, nil, `"ANSWER-2 from fake model" <nil>`},
	} {
		visit := sessiontest.Visit{
			Engine: func() engine.Engine { return &acp.Engine{AuthMethod: "key"} },
			Start:  test.start,
			Options: session.Options{
				Approve: func(context.Context, session.Approval) engine.Decision { return engine.Accept },
			},
			Harmless: func(f sessiontest.Fault, at sessiontest.Step) bool {
				return f.Harmless || f.Name == "says it twice" && !strings.Contains(at.Line, "_chunk")
			},
		}
		if test.call != nil {
			visit.Calls = append(visit.Calls, test.call)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := essence(sessiontest.ReadTranscript(t, filepath.Join("testdata", name+".ndjson")))
			if outcomes := visit.Faults(t, steps); outcomes[0] != test.want {
				t.Errorf("without a fault it ends with %q", outcomes)
			}
		})
	}
}

// TestLastAnswer proves that a turn that the agent has ended is not lost when the
// agent ends too, and is reported before what follows it.
func TestLastAnswer(t *testing.T) {
	t.Parallel()
	for range 30 {
		e := &acp.Engine{}
		p, r := open(t, e, engine.Start{})
		m := send(t, e, p, "go")
		p.chunk("last words")
		p.answer(m, `{"stopReason":"end_turn"}`)
		p.chunk("late")
		p.end()
		<-r.closed
		if check(t, r, "session_started s", "text last words", "result", "text late"); t.Failed() {
			return
		}
	}
}

// TestResultInItsPlace proves that nothing is read on before the end of a turn is
// reported.
func TestResultInItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &acp.Engine{}
		p, r := open(t, e, engine.Start{})
		m := send(t, e, p, "go")
		read := make(chan struct{})
		r.on = func(kind agent.Kind) {
			if kind != agent.KindUsage {
				return
			}
			select {
			case <-read:
				t.Error("the line after it is read")
			case <-time.After(time.Second):
			}
		}
		p.answer(m, `{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":1,"output_tokens":2}}}}`)
		p.chunk("late")
		close(read)
		p.end()
		<-r.closed
		check(t, r, "session_started s", "usage 1 2", "result", "text late")
	})
}

// TestOutputThatEndsDuringAWrite checks that an agent that neither reads nor writes
// blocks no call.
func TestOutputThatEndsDuringAWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &acp.Engine{}
		p, r := open(t, e, engine.Start{})
		sent := make(chan error)
		go func() { sent <- e.Send(context.Background(), "unread") }()
		synctest.Wait()
		p.out.Close()
		if err := <-sent; err == nil {
			t.Error("it is sent")
		}
		<-r.closed
	})
}

// TestFlood proves that a consumer that does not keep up loses nothing, and gets
// a request in its place among thousands of updates.
func TestFlood(t *testing.T) {
	t.Parallel()
	e := &acp.Engine{}
	p, r := open(t, e, engine.Start{})
	prompt := send(t, e, p, "go")
	const n = 1100
	said := make(chan struct{})
	go func() {
		defer close(said)
		for range n {
			p.chunk("a")
		}
		p.ask(0, "t")
		for range n {
			p.chunk("b")
		}
		p.answer(prompt, `{"stopReason":"end_turn"}`)
		p.end()
	}()
	go func() {
		if err := e.Answer(context.Background(), <-r.requests, engine.Accept); err != nil {
			t.Error(err)
		}
	}()
	<-said
	<-r.closed
	check(t, r, "session_started s", "text "+strings.Repeat("a", n), asked, "text "+strings.Repeat("b", n), "result")
}

// TestLateMessage proves that a message that was given up half written, and that
// the agent gets all the same, does not get into the next turn.
func TestLateMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &acp.Engine{}
		p, r := open(t, e, engine.Start{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.Send(ctx, "one"); err != context.DeadlineExceeded {
			t.Error(err)
		}
		sent := make(chan error)
		go func() { sent <- e.Send(t.Context(), "two") }()
		synctest.Wait()
		late := p.expect("session/prompt")
		m, _ := p.next()
		if m.Method != "session/cancel" {
			t.Errorf("the engine says %s first", m.Method)
		}
		p.chunk("to one")
		p.ask(0, "t")
		var answer, prompt message
		for answer.ID == nil || prompt.ID == nil { // in any order
			switch m, _ := p.next(); m.Method {
			case "":
				answer = m
			case "session/prompt":
				prompt = m
			}
		}
		if err := <-sent; err != nil || string(answer.Result) != cancelled {
			t.Error(err, string(answer.Result))
		}
		p.answer(late, `{"stopReason":"cancelled"}`)
		p.chunk("to two")
		p.answer(prompt, `{"stopReason":"end_turn"}`)
		p.end()
		<-r.closed
		check(t, r, "session_started s", "text to two", "result")
	})
}
