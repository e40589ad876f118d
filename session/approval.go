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

// ParseDecision returns the decision with a name. The spelling of the App Server,
// acceptForSession, is accepted as well.
func ParseDecision(name string) (Decision, error) {
	switch d := Decision(name); d {
	case Accept, AcceptForSession, Decline, Cancel:
		return d, nil
	case "acceptForSession":
		return AcceptForSession, nil
	}
	return "", agent.Usagef("%q is not a decision; use accept, accept_for_session, decline or cancel", name)
}

// Errors of a [Session].
var (
	// ErrTooLate: the turn or the approval request has ended.
	ErrTooLate = engine.ErrTooLate
	// ErrUnsupported: the runtime cannot do it.
	ErrUnsupported = engine.ErrUnsupported
)

// approvalRequest is an approval request that is open.
type approvalRequest struct {
	approval Approval
	number   int // in the order of asking
	timer    *time.Timer
	ctx      context.Context
	over     context.CancelFunc
}

// ask opens the approval request of e.
func (s *Session) ask(e *agent.Event) {
	lasting := e.Clone()
	r := &approvalRequest{approval: Approval{ID: e.ApprovalID, Tool: lasting.Tool, Reason: e.Text}}
	r.ctx, r.over = context.WithCancel(context.Background())
	s.mu.Lock()
	if s.approvals[e.ApprovalID] != nil { // the agent repeats itself
		s.mu.Unlock()
		r.over()
		return
	}
	s.asked++
	r.number = s.asked
	s.approvals[e.ApprovalID] = r
	r.timer = time.AfterFunc(orDefault(s.options.ApprovalTimeout, DefaultApprovalTimeout), func() {
		_ = s.Answer(context.Background(), r.approval.ID, Decline) // unless it was answered meanwhile
	})
	s.mu.Unlock()
	if s.options.Approve != nil {
		go func() {
			if d := s.options.Approve(r.ctx, r.approval); d != "" {
				_ = s.Answer(context.Background(), r.approval.ID, d)
			}
		}()
	}
}

// Answer answers an approval request. It returns ErrTooLate when the request is not
// open: it was answered, has timed out, or its turn has ended.
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

// Approvals returns the open approval requests, oldest first.
func (s *Session) Approvals() []Approval {
	s.mu.Lock()
	defer s.mu.Unlock()
	open := slices.SortedFunc(maps.Values(s.approvals), func(a, b *approvalRequest) int { return a.number - b.number })
	list := make([]Approval, len(open))
	for i, r := range open {
		list[i] = r.approval
	}
	return list
}

// close closes an approval request and reports whether it was open.
func (s *Session) close(approvalID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.approvals[approvalID]
	if r == nil {
		return false
	}
	delete(s.approvals, approvalID)
	r.timer.Stop()
	r.over()
	return true
}

// withdraw closes all approval requests.
func (s *Session) withdraw() {
	for _, a := range s.Approvals() {
		s.close(a.ID)
	}
}
