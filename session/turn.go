package session

import (
	"context"
	"errors"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/capture"
)

// A Turn is one message and what the agent answers. Its methods may be called concurrently.
type Turn struct {
	message   Message
	number    int
	queued    time.Time
	delivered chan struct{}
	done      chan struct{}
	announced bool // Options.Sending was called; under Session.calls

	// Guarded by the session until done is closed.
	begun      time.Time
	got        bool        // by the agent: delivered is closed
	interrupts int         // that were not given up
	overdue    error       // it took too long
	timer      *time.Timer // of its limit; nil for none
	answer     capture.Answer
	before     agent.Usage // of the session, when the turn began
	result     agent.Result
	err        error
}

func newTurn(m Message) *Turn {
	return &Turn{message: m, queued: time.Now(), delivered: make(chan struct{}), done: make(chan struct{})}
}

// Number returns the number of the turn in its session, counted from 1 in the order
// in which messages were accepted. A message added to a running turn has the number
// of that turn.
func (t *Turn) Number() int { return t.number }

// Delivered returns a channel that is closed when the agent has received the
// message, before Done is closed. If the agent never receives it, the turn ends
// and the channel stays open.
func (t *Turn) Delivered() <-chan struct{} { return t.delivered }

// Done returns a channel that is closed when the turn is over.
func (t *Turn) Done() <-chan struct{} { return t.done }

// Wait waits until the turn or ctx ends; the end of ctx does not affect the turn. The
// Result is that of the turn alone, as far as the agent reports it; its ExitCode is
// 0, or -1 when the agent's process ended first. The error is an [*agent.Error]:
// agent.ErrCanceled for a turn that was interrupted, agent.ErrTimeout for one that
// took too long, agent.ErrAuthentication, agent.ErrQuota or agent.ErrAgent for one
// that failed, and with [ErrNotDelivered] in its chain for a message that the agent
// never received.
func (t *Turn) Wait(ctx context.Context) (agent.Result, error) {
	select {
	case <-t.done:
		return t.result, t.err
	case <-ctx.Done():
		select {
		case <-t.done: // it was ready as well
			return t.result, t.err
		default:
			return agent.Result{}, context.Cause(ctx)
		}
	}
}

// ErrNotDelivered is in the error of a turn whose message the agent never
// received.
var ErrNotDelivered = errors.New("the message was not delivered")

// usage returns what the turn consumed, of what the session has up to now.
func (t *Turn) usage(now *agent.Usage) *agent.Usage {
	if now == nil || *now == t.before {
		return nil
	}
	u := agent.Usage{
		Input: max(0, now.Input-t.before.Input), Cached: max(0, now.Cached-t.before.Cached),
		Output: max(0, now.Output-t.before.Output), Reasoning: max(0, now.Reasoning-t.before.Reasoning),
		Cumulative: now.Cumulative && t.before == (agent.Usage{}),
		Context:    now.Context, ContextSize: now.ContextSize,
	}
	if now.CostUSD != nil {
		cost := *now.CostUSD
		if t.before.CostUSD != nil {
			cost = max(0, cost-*t.before.CostUSD)
		}
		u.CostUSD = &cost
	}
	if u.Input == 0 && u.Output == 0 && (u.CostUSD == nil || *u.CostUSD == 0) {
		return nil
	}
	return &u
}

// end closes the turn with how it ended.
func (t *Turn) end(runtime string, result agent.Result, err error) {
	result.Runtime = runtime
	if result.Text == "" {
		result.Text, result.TextTruncated = t.answer.Text(nil)
	}
	if !t.begun.IsZero() {
		result.Duration = time.Since(t.begun)
	}
	if t.timer != nil {
		t.timer.Stop()
	}
	if t.overdue != nil {
		err = t.overdue
	}
	t.result, t.err = result, err
	close(t.done)
}

// announce reports that the message of t is about to be sent, for the first time.
func (s *Session) announce(t *Turn) {
	if s.options.Sending != nil && !t.announced {
		s.options.Sending(t.message)
	}
	t.announced = true
}

// delivered records that the agent has got the message of t; s.mu is held.
func (s *Session) delivered(t *Turn) {
	if !t.got {
		t.got = true
		close(t.delivered)
		s.tell(t, t.message)
	}
}

func (s *Session) tell(t *Turn, m Message) {
	if s.options.Delivered != nil {
		s.options.Delivered(t, m)
	}
}

// end ends a turn; s.mu is held.
func (s *Session) end(t *Turn, result agent.Result, err error) {
	t.end(s.runtime, result, err)
	if s.options.Over != nil {
		s.options.Over(t)
	}
}
