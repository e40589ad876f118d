package session

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// A Decision is an answer to an approval request.
type Decision = engine.Decision

// The decisions.
const (
	Accept           = engine.Accept
	AcceptForSession = engine.AcceptForSession // and do not ask again for the same
	Decline          = engine.Decline          // the turn continues without it
	Cancel           = engine.Cancel           // the turn ends
)

// ParseDecision returns the decision that word names. The spelling of the App
// Server, acceptForSession, is understood as well.
func ParseDecision(word string) (Decision, error) {
	switch d := Decision(word); d {
	case Accept, AcceptForSession, Decline, Cancel:
		return d, nil
	}
	if word == "acceptForSession" {
		return AcceptForSession, nil
	}
	return "", agent.Usagef("%q is no decision; it is accept, accept_for_session, decline or cancel", word)
}

// Errors of a [Session].
var (
	// ErrTooLate: the turn or the approval request has ended.
	ErrTooLate = engine.ErrTooLate
	// ErrUnsupported: the runtime cannot do it.
	ErrUnsupported = engine.ErrUnsupported
)

// question is a question for permission that is open.
type question struct {
	approval Approval
	number   int // in the order of asking
	timer    *time.Timer
	ctx      context.Context
	over     context.CancelFunc
}

// ask opens the question of e.
func (s *Session) ask(e *agent.Event) {
	lasting := e.Clone()
	q := &question{approval: Approval{ID: e.ApprovalID, Tool: lasting.Tool, Reason: e.Text}}
	q.ctx, q.over = context.WithCancel(context.Background())
	s.mu.Lock()
	if s.approvals[e.ApprovalID] != nil { // the agent repeats itself
		s.mu.Unlock()
		q.over()
		return
	}
	s.asked++
	q.number = s.asked
	s.approvals[e.ApprovalID] = q
	q.timer = time.AfterFunc(orDefault(s.options.ApprovalTimeout, DefaultApprovalTimeout), func() {
		_ = s.Answer(context.Background(), q.approval.ID, Decline) // or somebody was faster
	})
	s.mu.Unlock()
	if s.options.Approve != nil {
		go func() {
			if d := s.options.Approve(q.ctx, q.approval); d != "" {
				_ = s.Answer(context.Background(), q.approval.ID, d)
			}
		}()
	}
}

// Answer answers a question for permission. It returns ErrTooLate when the
// question is not open: answered, out of time, or its turn is over.
func (s *Session) Answer(ctx context.Context, approvalID string, d Decision) error {
	if !s.close(approvalID) {
		return ErrTooLate
	}
	if d == Cancel {
		s.mu.Lock()
		if s.current != nil {
			s.current.interrupts++
		}
		s.mu.Unlock()
	}
	return s.engine.Answer(ctx, approvalID, d)
}

// Approvals returns the questions that are open, oldest first.
func (s *Session) Approvals() []Approval {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := slices.SortedFunc(maps.Values(s.approvals), func(a, b *question) int { return a.number - b.number })
	list := make([]Approval, len(open))
	for i, q := range open {
		list[i] = q.approval
	}
	return list
}

// close closes a question and reports whether it was open.
func (s *Session) close(approvalID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.approvals[approvalID]
	if q == nil {
		return false
	}
	delete(s.approvals, approvalID)
	q.timer.Stop()
	q.over()
	return true
}

// withdraw closes all questions.
func (s *Session) withdraw() {
	for _, a := range s.Approvals() {
		s.close(a.ID)
	}
}
