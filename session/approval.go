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

// approvalRequest is an approval request, or questions, that is open.
type approvalRequest struct {
	approval  Approval
	questions []agent.Question // nil for an approval request
	number    int              // in the order of asking
	timer     *time.Timer
	ctx       context.Context
	over      context.CancelFunc
}

// ask opens the approval request, or the questions, of e.
func (s *Session) ask(e *agent.Event) {
	lasting := e.Clone()
	r := &approvalRequest{approval: Approval{ID: e.ApprovalID, Tool: lasting.Tool, Reason: e.Text}}
	if e.Kind == agent.KindQuestion {
		r.questions = lasting.Questions
	}
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
	switch {
	case r.questions != nil && s.options.Ask != nil:
		go s.consult(r)
	case r.questions == nil && s.options.Approve != nil:
		go func() {
			if d := s.options.Approve(r.ctx, r.approval); d != "" {
				_ = s.Answer(context.Background(), r.approval.ID, d)
			}
		}()
	}
}

// Answer answers an approval request, or declines questions: see
// [Session.AnswerQuestions]. It returns ErrTooLate when the request is not open: it was
// answered, has timed out, or its turn has ended. If ctx has ended before, the request stays
// open; if it ends while the agent takes the answer, the agent gets it all the same.
func (s *Session) Answer(ctx context.Context, approvalID string, d Decision) error {
	if _, isQuestion := s.questionRequest(approvalID); isQuestion && (d == Accept || d == AcceptForSession) {
		return agent.Usagef("request %s is a question: it takes answers, or decline or cancel, not %s", approvalID, d)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r := s.takeRequest(approvalID)
	if r == nil {
		return ErrTooLate
	}
	defer r.over() // ctx can be that of the request
	if d == Cancel {
		return s.cancel(ctx, approvalID)
	}
	return s.masked(deliver(ctx, func(ctx context.Context) error { return s.engine.Answer(ctx, approvalID, d) }))
}

// cancel answers an approval request by the end of the turn.
func (s *Session) cancel(ctx context.Context, approvalID string) error {
	s.mu.Lock()
	t := s.current
	if t != nil {
		t.interrupts++
	}
	s.mu.Unlock()
	return s.masked(deliver(ctx, func(ctx context.Context) error {
		err := s.engine.Answer(ctx, approvalID, Cancel)
		if err != nil && t != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			t.interrupts--
			s.signal()
		}
		return err
	}))
}

// deliver passes an answer to the engine, whose request nothing else would answer: the end
// of ctx ends the wait alone.
func deliver(ctx context.Context, answer func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- answer(context.WithoutCancel(ctx)) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Approvals returns the open approval requests, oldest first.
func (s *Session) Approvals() []Approval {
	list := []Approval{}
	for _, r := range s.open() {
		if r.questions == nil {
			list = append(list, r.approval)
		}
	}
	return list
}

// open returns the open requests, oldest first.
func (s *Session) open() []*approvalRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.approvals), func(a, b *approvalRequest) int { return a.number - b.number })
}

// takeRequest takes a request out of those that are open; nil if it is not.
func (s *Session) takeRequest(approvalID string) *approvalRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.approvals[approvalID]
	if r != nil {
		delete(s.approvals, approvalID)
		r.timer.Stop()
	}
	return r
}

// close closes a request if it is open.
func (s *Session) close(approvalID string) {
	if r := s.takeRequest(approvalID); r != nil {
		r.over()
	}
}

// withdraw closes all requests.
func (s *Session) withdraw() {
	for _, r := range s.open() {
		s.close(r.approval.ID)
	}
}
