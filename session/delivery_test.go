package session_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/session"
)

func TestDelivered(t *testing.T) {
	t.Parallel()
	refusal := errors.New("no")
	p := &peer{send: func(text string) error {
		if text == "bad" {
			return refusal
		}
		return nil
	}}
	s := open(t, p, session.Options{})
	first := s.Send(session.Message{Text: "first"})
	<-first.Delivered()
	bad := s.Send(session.Message{Text: "bad"})
	p.finish()
	if _, err := bad.Wait(t.Context()); !errors.Is(err, refusal) || !errors.Is(err, session.ErrNotDelivered) {
		t.Error(err)
	}
	select {
	case <-bad.Delivered():
		t.Error("a message that was refused is delivered")
	default:
	}
	if s.PID() != 0 {
		t.Errorf("PID %d of no process", s.PID())
	}
	s.Stop(t.Context(), "")
}

// The deliveries of messages are reported in the order in which they happen, also where
// the result of a turn is faster than the word that its message has arrived, and
// where the agent ends before there is any.
func TestDeliveriesAreReportedInOrder(t *testing.T) {
	t.Parallel()
	p := &peer{steer: func(text string) error {
		if text == "too late" {
			return session.ErrTooLate
		}
		return nil
	}}
	p.send = func(text string) error {
		switch text {
		case "quick":
			over := make(chan struct{})
			go func() { defer close(over); p.finish() }()
			<-over
		case "bad":
			return errors.New("no")
		case "last":
			p.end(nil)
			<-p.done
		}
		return nil
	}
	var reported []string // under the lock of the session
	turns := map[*session.Turn]string{}
	s := open(t, p, session.Options{
		Delivered: func(turn *session.Turn, m session.Message) {
			if turns[turn] == "" {
				turns[turn] = m.Text
			}
			reported = append(reported, turns[turn]+" gets "+m.Text)
		},
		Over: func(turn *session.Turn) {
			<-turn.Done()
			_, err := turn.Wait(t.Context())
			reported = append(reported, fmt.Sprintf("%s is over, %t", turns[turn], errors.Is(err, session.ErrNotDelivered)))
		},
	})
	s.Send(session.Message{Text: "one"})
	<-p.sent
	s.Steer(t.Context(), session.Message{Text: "more"})
	s.Send(session.Message{Text: "quick"})
	s.Send(session.Message{Text: "bad"})
	s.Steer(t.Context(), session.Message{Text: "too late"})
	p.finish()
	if text := <-p.sent; text != "too late" {
		t.Errorf("%q is urgent", text)
	}
	last := s.Send(session.Message{Text: "last"})
	p.finish()
	<-last.Done()
	select {
	case <-last.Delivered():
		t.Error("Delivered is closed without a report of delivery")
	default:
	}
	s.Stop(t.Context(), "")
	want := "one gets one, one gets more, one is over, false, too late gets too late, too late is over, false, " +
		"quick gets quick, quick is over, false,  is over, true,  is over, false"
	if got := strings.Join(reported, ", "); got != want {
		t.Errorf("reported\n%s, want\n%s", got, want)
	}
}
