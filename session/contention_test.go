package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// TestCallsEndWithTheirContext although the engine is busy with another one.
func TestCallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answered := make(chan struct{})
		p := &peer{steer: func(string) error {
			<-answered // which the agent waits for
			return nil
		}}
		s := open(t, p, session.Options{Approve: func(context.Context, session.Approval) session.Decision { return session.Accept }})
		first := s.Send(session.Message{Text: "first"})
		<-p.sent
		steered := make(chan *session.Turn)
		go func() { steered <- s.Steer(t.Context(), session.Message{Text: "steered"}) }()
		synctest.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Interrupt(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Interrupt: %v", err)
		}
		next := s.Steer(ctx, session.Message{Text: "next"})
		if next == first {
			t.Error("it went into the turn")
		}
		p.request("q")
		synctest.Wait()
		if got := p.answered(); got != "[q accept]" {
			t.Errorf("answered %s", got)
		}
		close(answered)
		if turn := <-steered; turn != first {
			t.Error("it did not go into the turn")
		}
		p.finish()
		if got := <-p.sent; got != "next" {
			t.Errorf("then %q was sent", got)
		}
		s.Stop(t.Context(), "")
	})
}

// TestInterruptThatIsNotAnswered holds up nothing but the next turn, which it is not
// meant for.
func TestInterruptThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &peer{
			steer:     func(string) error { return nil },
			interrupt: func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) },
		}
		s := open(t, p, session.Options{})
		turn := s.Send(session.Message{Text: "first"})
		<-p.sent
		interrupted := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go func() { interrupted <- s.Interrupt(ctx) }()
		synctest.Wait()

		brief, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if s.Steer(brief, session.Message{Text: "steered"}) != turn {
			t.Error("it did not go into the turn")
		}
		p.request("q")
		if err := s.Answer(brief, "q", session.Accept); err != nil {
			t.Error(err)
		}
		if err := s.Interrupt(brief); !errors.Is(err, context.DeadlineExceeded) || p.interrupted != 2 {
			t.Errorf("again: %v, %d", err, p.interrupted)
		}
		s.Send(session.Message{Text: "next"})
		p.finish()
		synctest.Wait()
		if len(p.sent) > 0 {
			t.Error("the next turn can be interrupted instead")
		}
		if err := <-interrupted; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if got := <-p.sent; got != "next" {
			t.Errorf("then %q was sent", got)
		}
		s.Stop(t.Context(), "")
	})
}

// An interrupt right after a message is for its turn, whether the agent has it or not.
func TestInterruptRightAfterSend(t *testing.T) {
	t.Parallel()
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{}
			s := open(t, p, session.Options{})
			defer s.Stop(context.Background(), "")
			turn := s.Send(session.Message{Text: "go"})
			if err := s.Interrupt(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			select {
			case <-p.sent:
				if p.interrupted != 1 {
					t.Errorf("the agent was interrupted %d times", p.interrupted)
				}
				p.sink.Event(&agent.Event{Kind: agent.KindResult, Failed: true})
			default:
				if p.interrupted != 0 {
					t.Error("the agent was interrupted although it has no message")
				}
			}
			if _, err := turn.Wait(t.Context()); !errors.Is(err, agent.ErrCanceled) {
				t.Errorf("the turn ended with %v", err)
			}
		})
	}
}

func TestCancelEndsTheTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		s := open(t, p, session.Options{})
		turn := s.Send(session.Message{Text: "go"})
		<-p.sent
		p.request("q")
		if err := s.Answer(t.Context(), "q", session.Cancel); err != nil {
			t.Error(err)
		}
		p.sink.Event(&agent.Event{Kind: agent.KindResult, Failed: true, Text: "diagnostics"})
		if _, err := turn.Wait(t.Context()); !errors.Is(err, agent.ErrCanceled) || err.Error() != "test: the turn was interrupted" {
			t.Error(err)
		}
		s.Stop(t.Context(), "")
	})
}

// A turn that could not be cancelled has its own outcome.
func TestCancelThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &lateEngine{&peer{}}
		s := openWith(t, e, e.peer, session.Options{})
		turn := s.Send(session.Message{Text: "go"})
		<-e.sent
		e.request("q")
		if err := s.Answer(t.Context(), "q", session.Cancel); !errors.Is(err, session.ErrTooLate) {
			t.Error(err)
		}
		e.sink.Event(&agent.Event{Kind: agent.KindResult, Failed: true, Failure: agent.FailureQuota, Text: "no credit"})
		if _, err := turn.Wait(t.Context()); !errors.Is(err, agent.ErrQuota) {
			t.Error(err)
		}
		s.Stop(t.Context(), "")
	})
}

type lateEngine struct{ *peer }

func (*lateEngine) Answer(context.Context, string, session.Decision) error { return session.ErrTooLate }

// TestStopAfterTheOutputHasEnded tests that the agent's input is closed then, too.
func TestStopAfterTheOutputHasEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &peer{deaf: true}
		s := open(t, p, session.Options{})
		p.once.Do(func() { p.sink.Closed(nil) })
		go func() {
			synctest.Wait()
			close(p.done)
		}()
		s.Stop(t.Context(), "")
		if !p.closed {
			t.Error("the engine is not closed")
		}
	})
}

// TestUsageOfATurn is its own, and never less than nothing.
func TestUsageOfATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		s := open(t, p, session.Options{})
		for i, usage := range []agent.Usage{{Input: 10, Output: 1}, {Input: 5, Output: 3}} {
			turn := s.Send(session.Message{Text: "go"})
			<-p.sent
			p.sink.Event(&agent.Event{Kind: agent.KindUsage, Usage: &usage})
			p.sink.Event(&agent.Event{Kind: agent.KindUsage, Usage: &agent.Usage{Input: 1000}, Subagent: "x"})
			p.finish()
			want := []agent.Usage{{Input: 10, Output: 1}, {Input: 0, Output: 2}}[i]
			if result, err := turn.Wait(t.Context()); err != nil || *result.Usage != want {
				t.Errorf("turn %d: %+v, %v", i, result.Usage, err)
			}
		}
		s.Stop(t.Context(), "")
	})
}
