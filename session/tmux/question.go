package tmux

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// A question is one that the agent has asked, or was answered last.
type question struct {
	number   int
	facts    *engine.Question // nil while none is shown
	answered time.Time        // zero while it is open
}

func (q *question) id() string { return "question-" + strconv.Itoa(q.number) }

// asking takes note of whether s asks a question, and returns what is to be told
// of that. What a question leaves on the screen until its answer has an effect is
// no other one.
func (e *paneEngine) asking(s screen, now time.Time) func() {
	q, facts := &e.asked, e.terminal.question(s)
	before := q.id()
	open := q.facts != nil && q.answered.IsZero()
	closed := func() {
		if open {
			e.sink.Answered(before)
		}
	}
	switch {
	case facts == nil:
		q.facts = nil
	case open && facts == q.facts:
		return func() {}
	case facts == q.facts && now.Sub(q.answered) < dialogWait:
	default:
		*q = question{number: q.number + 1, facts: facts}
		event := &agent.Event{Kind: agent.KindApproval, ApprovalID: q.id(), Text: maskSecrets(e.env, s.tail(shownLines))}
		return func() {
			closed()
			e.sink.Event(event)
		}
	}
	return closed
}

// Answer presses the keys that answer a question.
func (e *paneEngine) Answer(ctx context.Context, approvalID string, d engine.Decision) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	q := &e.asked
	if q.facts == nil || !q.answered.IsZero() || q.id() != approvalID {
		return engine.ErrTooLate
	}
	s, err := e.look(ctx)
	if err != nil {
		return err
	}
	if e.terminal.question(s) != q.facts {
		return engine.ErrTooLate
	}
	q.answered = time.Now()
	keys := q.facts.Decline
	switch {
	case d == engine.Accept || d == engine.AcceptForSession: // it may ask again
		keys = q.facts.Accept
	case d == engine.Cancel:
		if e.current != nil {
			e.current.interrupted = true
		}
		if !slices.Equal(keys, e.terminal.Interrupt) {
			keys = slices.Concat(keys, e.terminal.Interrupt)
		}
	}
	return e.press(ctx, keys)
}
