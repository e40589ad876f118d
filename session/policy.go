package session

import (
	"context"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// decide lets the policy answer the approval request of e. It reports whether it does.
// Then the request is not open any more for anyone else.
func (s *Session) decide(e *agent.Event) bool {
	if s.options.Policy == nil || e.Kind != agent.KindApproval {
		return false
	}
	answer := s.options.Policy.Decide(e.Tool, s.start)
	decision := engine.Decision(answer.Decision)
	if decision != Accept && decision != Decline || !s.mayDecide(e, decision) {
		return false
	}
	id := e.ApprovalID
	e.ApprovalID, e.Policy, e.Failed = "", &answer, decision == Decline
	go func() { // an engine is not called back
		_ = s.engine.Answer(context.Background(), id, decision) // unless the request is over
		s.mu.Lock()
		defer s.mu.Unlock()
		s.deciding--
	}()
	return true
}

// mayDecide reports whether the decision of the policy applies, and then counts it. It
// does not if the agent does not read its answers, if a turn is to end, or if it gives
// more than read access includes.
func (s *Session) mayDecide(e *agent.Event, d Decision) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deciding >= engine.MaxApprovals {
		return false
	}
	if d == Accept {
		reads := e.Tool != nil && (e.Tool.Kind == agent.ToolRead || e.Tool.Kind == agent.ToolFetch)
		if s.interrupts > 0 || s.current != nil && s.current.interrupts > 0 || s.access == agent.AccessRead && !reads {
			return false
		}
	}
	s.deciding++
	return true
}
