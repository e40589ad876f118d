package session_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

// TestEventsCarryTheNumberOfTheirTurn, which is that of the turn, and 0 outside.
func TestEventsCarryTheNumberOfTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &peer{}
		var numbers []int
		s := open(t, p, session.Options{Events: func(e *agent.Event) error { numbers = append(numbers, e.Turn); return nil }})
		p.say("before")
		turns := []*session.Turn{s.Send(session.Message{Text: "a"}), s.Send(session.Message{Text: "b"})}
		for i, turn := range turns {
			<-p.sent
			p.sink.Event(&agent.Event{Kind: agent.KindText, Turn: 77})
			p.finish()
			<-turn.Done()
			if turn.Number() != i+1 {
				t.Errorf("turn %d has the number %d", i+1, turn.Number())
			}
		}
		p.say("after")
		s.Stop(t.Context(), "")
		if got, want := numbers, []int{0, 1, 1, 2, 2, 0}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// TestEventsThatFailEndTheSession, with that error, and are not called again.
func TestEventsThatFailEndTheSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, full := &peer{}, errors.New("the disk is full")
		calls := 0
		s := open(t, p, session.Options{Events: func(*agent.Event) error { calls++; return full }})
		running, queued := s.Send(session.Message{Text: "a"}), s.Send(session.Message{Text: "b"})
		<-p.sent
		p.say("x")
		p.say("y")
		<-s.Done()
		if calls != 1 || !errors.Is(s.Err(), full) {
			t.Errorf("%d calls, %v", calls, s.Err())
		}
		for _, turn := range []*session.Turn{running, queued} {
			if _, err := turn.Wait(t.Context()); !errors.Is(err, full) || !errors.Is(err, agent.ErrAgent) {
				t.Error(err)
			}
		}
	})
}

// TestTurnTimeout ends the turn, and the session where the agent does not end it.
func TestTurnTimeout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		message, session time.Duration
		obeys, ends      bool
		after            time.Duration // when the turn ends
	}{
		"of the message":   {message: time.Minute, obeys: true, after: time.Minute},
		"of the session":   {session: time.Minute, obeys: true, after: time.Minute},
		"the message wins": {message: time.Minute, session: time.Second, obeys: true, after: time.Minute},
		"not for this one": {message: -1, session: time.Second},
		"it is not heard":  {message: time.Minute, ends: true, after: time.Minute + session.TurnGrace},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &peer{}
				s := open(t, p, session.Options{TurnTimeout: c.session})
				begun := time.Now()
				long := s.Send(session.Message{Text: "a", TurnTimeout: c.message})
				next := s.Send(session.Message{Text: "b", TurnTimeout: -1})
				<-p.sent
				if c.after == 0 {
					time.Sleep(time.Hour)
					p.finish()
					if _, err := long.Wait(t.Context()); err != nil {
						t.Error(err)
					}
					s.Stop(t.Context(), "")
					return
				}
				if c.obeys {
					time.Sleep(c.after)
					synctest.Wait()
					p.sink.Event(&agent.Event{Kind: agent.KindResult, Failed: true, Interrupted: true, Text: "interrupted"})
				}
				_, err := long.Wait(t.Context())
				if !errors.Is(err, agent.ErrTimeout) || !strings.Contains(err.Error(), "the turn took longer than 1m0s") {
					t.Error(err)
				}
				if took := time.Since(begun); took != c.after || p.interrupted != 1 {
					t.Errorf("it took %v, with %d interrupts", took, p.interrupted)
				}
				if c.ends {
					<-s.Done()
					if _, err := next.Wait(t.Context()); !errors.Is(err, session.ErrNotDelivered) || !errors.Is(s.Err(), agent.ErrTimeout) {
						t.Errorf("%v, %v", err, s.Err())
					}
					return
				}
				<-p.sent
				p.finish()
				if _, err := next.Wait(t.Context()); err != nil {
					t.Errorf("the next turn: %v", err)
				}
				time.Sleep(time.Hour) // the timer of a turn that is over does nothing
				if s.State() != session.StateReady || p.interrupted != 1 {
					t.Errorf("%s, %d interrupts", s.State(), p.interrupted)
				}
				s.Stop(t.Context(), "")
			})
		})
	}
}
