package acp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// transcript returns a recording as a script.
func transcript(t *testing.T, name string) []sessiontest.Step {
	f, err := os.Open(filepath.Join("testdata", name+".ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	steps, err := sessiontest.Transcript(f)
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// visit is a user who says something, accepts everything, interrupts after a
// while, says something more and leaves. It returns how each message ended. That
// nothing hangs and no goroutine stays is checked by the bubble it runs in.
func visit(t *testing.T, steps []sessiontest.Step, start session.Start) (outcomes []string) {
	t.Helper()
	peer := sessiontest.Start(steps)
	opening, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
	defer cancel()
	s, err := session.Open(opening, "test", &acp.Engine{AuthMethod: "key"}, peer, peer.Transport(), start, session.Options{
		Approve: func(context.Context, session.Approval) session.Decision { return session.Accept },
	})
	if err != nil {
		return []string{"open: " + err.Error()}
	}
	const timeout = 10 * time.Minute
	turns := []*session.Turn{s.Send(session.Message{Text: "one", Timeout: timeout})}
	time.Sleep(timeout)
	interrupting, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	_ = s.Interrupt(interrupting) // the agent may have ended
	time.Sleep(timeout)
	turns = append(turns, s.Send(session.Message{Text: "two", Timeout: timeout}))
	time.Sleep(2 * timeout)
	s.Stop(t.Context(), "enough")
	for i, turn := range turns {
		select {
		case <-turn.Done():
		default:
			t.Errorf("message %d has no outcome", i)
			continue
		}
		result, err := turn.Wait(t.Context())
		outcomes = append(outcomes, fmt.Sprintf("%q %v", result.Text, err))
	}
	return outcomes
}

// harmless are the faults that change nothing of what becomes of the messages.
var harmless = []string{"says what nobody knows", "says what is malformed", "says it twice"}

func TestFaultsAtEveryStep(t *testing.T) {
	t.Parallel()
	const resumed = "4dc184e0-9b34-4fd3-b182-1472d3f3ba51"
	for name, test := range map[string]struct {
		start session.Start
		want  string
	}{
		"perm-allow":        {session.Start{}, `"DONE after tool" <nil>`},
		"load-nextminute-b": {session.Start{Resume: resumed}, `"ANSWER-2 from fake model" <nil>`},
	} {
		steps := transcript(t, name)
		for _, fault := range sessiontest.Faults() {
			t.Run(name+" "+fault.Name, func(t *testing.T) {
				t.Parallel()
				for i := range steps {
					synctest.Test(t, func(t *testing.T) {
						got := visit(t, fault.Apply(steps, i), test.start)
						doubled := fault.Name == "says it twice" && strings.Contains(steps[i].Line, "_chunk")
						if slices.Contains(harmless, fault.Name) && !doubled && got[0] != test.want {
							t.Errorf("at step %d: %q", i, got)
						}
					})
					if t.Failed() {
						t.Fatalf("at step %d: %s", i, steps[i].Line)
					}
				}
			})
		}
	}
}

// TestLastAnswer proves that a turn that the agent has ended is not lost when the
// agent ends too, and is reported before what is said after it.
func TestLastAnswer(t *testing.T) {
	t.Parallel()
	for range 30 {
		e := &acp.Engine{}
		p, r := open(t, e, session.Start{})
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
		p, r := open(t, e, session.Start{})
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

// TestOutputThatEndsDuringAWrite proves that an agent that neither reads nor says
// anything more keeps nobody.
func TestOutputThatEndsDuringAWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &acp.Engine{}
		p, r := open(t, e, session.Start{})
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
// a question in its place among thousands of updates.
func TestFlood(t *testing.T) {
	t.Parallel()
	e := &acp.Engine{}
	p, r := open(t, e, session.Start{})
	prompt := send(t, e, p, "go")
	const n = 1100 // the SDK would give up
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
		if err := e.Answer(context.Background(), <-r.questions, session.Accept); err != nil {
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
		p, r := open(t, e, session.Start{})
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
		if m.Method == "$/cancel_request" { // the SDK's, at any time
			m, _ = p.next()
		}
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
