package session

import (
	"errors"
	"fmt"
	"math"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
)

// sink is the side of a session that its engine sees.
type sink Session

// Event records an event, passes it on, and ends the turn that it ends.
func (k *sink) Event(e *agent.Event) {
	s := (*Session)(k)
	plausible(e.Usage)
	t := s.note(e)
	if e.ApprovalID != "" && (e.Kind == agent.KindApproval || e.Kind == agent.KindQuestion && len(e.Questions) > 0) && !s.decide(e) {
		s.ask(e)
	}
	if s.options.Events != nil && !s.lost {
		if err := s.options.Events(e); err != nil {
			s.lost = true
			go s.fail(fmt.Errorf("events could not be passed on: %w", err)) // which waits for the end of this
		}
	}
	if t != nil {
		s.finish(t, e)
	}
}

// plausible takes out of a usage, which may be nil, what no turn can consume.
func plausible(u *agent.Usage) {
	if u == nil {
		return
	}
	for _, n := range []*int64{&u.Input, &u.Cached, &u.Output, &u.Reasoning, &u.Context, &u.ContextSize} {
		*n = max(0, *n)
	}
	if u.CostUSD != nil && !(*u.CostUSD >= 0 && *u.CostUSD <= math.MaxFloat64) {
		u.CostUSD = nil
	}
}

// note keeps what the session needs of e, and returns the turn that e ends.
func (s *Session) note(e *agent.Event) *Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Kind == agent.KindSessionStarted {
		merge(&s.info, engine.Info{SessionID: e.SessionID, Model: e.Model})
	}
	if e.Kind == agent.KindUsage && e.Usage != nil && e.Subagent == "" {
		s.usage = e.Clone().Usage
	}
	e.Turn = 0
	if s.current == nil {
		return nil
	}
	e.Turn = s.current.number
	s.current.answer.Note(e)
	if e.Kind == agent.KindResult && e.Subagent == "" {
		return s.current
	}
	return nil
}

// finish ends t with the result e.
func (s *Session) finish(t *Turn, e *agent.Event) {
	s.withdraw()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != t {
		return
	}
	s.current = nil
	s.delivered(t) // also where the engine is still waiting for a word about that
	result := agent.Result{SessionID: s.info.SessionID, Model: s.info.Model, Usage: t.usage(s.usage)}
	result.Text, result.TextTruncated = t.answer.Text(e)
	s.end(t, result, s.verdict(t, e))
	s.signal()
}

// verdict returns the error of a turn that ended with e.
func (s *Session) verdict(t *Turn, e *agent.Event) error {
	if !e.Failed {
		return nil
	}
	kind, text := agent.ErrAgent, s.mask(e.Text)
	switch {
	case e.Interrupted || t.interrupts > 0:
		kind = agent.ErrCanceled
		if text == "" || !e.Interrupted { // the agent's own text is about something else
			text = "the turn was interrupted"
		}
	case e.Failure == agent.FailureAuthentication:
		kind = agent.ErrAuthentication
	case e.Failure == agent.FailureQuota:
		kind = agent.ErrQuota
	}
	if text == "" {
		text = "the turn failed without a reason"
	}
	return &agent.Error{Kind: kind, Runtime: s.runtime, Err: errors.New(text)}
}

// Answered closes an approval request.
func (k *sink) Answered(approvalID string) { (*Session)(k).close(approvalID) }

// Closed ends what cannot continue without the agent.
func (k *sink) Closed(err error) {
	s := (*Session)(k)
	s.withdraw()
	s.endAll(s.masked(err))
	if s.options.Closed != nil {
		s.options.Closed(s.Err())
	}
	close(s.closed)
}

// endAll ends the turns of an agent that has ended.
func (s *Session) endAll(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	why, kind := ErrStopped, agent.ErrCanceled
	if !s.stopping {
		why, kind = errors.New("the agent has ended"), agent.ErrAgent
	}
	if s.failure != nil {
		kind = agent.ErrAgent
		why = fmt.Errorf("%w: %w", why, s.failure)
	} else if s.failure = err; err != nil {
		why = fmt.Errorf("%w: %w", why, err)
	}
	if s.reason != "" {
		why = fmt.Errorf("%w (%s)", why, s.reason)
	}
	s.stopping = true
	if t := s.current; t != nil {
		s.current = nil
		result := agent.Result{ExitCode: -1, SessionID: s.info.SessionID, Model: s.info.Model, Usage: t.usage(s.usage)}
		s.end(t, result, &agent.Error{Kind: kind, Runtime: s.runtime, Err: fmt.Errorf("during the turn: %w", why)})
	}
	for _, list := range []*[]*Turn{&s.urgent, &s.queue} {
		for _, t := range *list {
			s.end(t, agent.Result{ExitCode: -1}, s.undelivered(kind, why))
		}
		*list = nil
	}
}
