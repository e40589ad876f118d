package session_test

import (
	"errors"
	"testing"

	"github.com/busdk/bus-agent/agent"
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

func TestParseDelivery(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"stdin", "rpc", "tmux"} {
		if d, err := session.ParseDelivery(word); err != nil || string(d) != word {
			t.Errorf("%q, %v", d, err)
		}
	}
	if _, err := session.ParseDelivery("pigeon"); !errors.Is(err, agent.ErrUsage) {
		t.Error(err)
	}
}
