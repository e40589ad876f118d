package telemetry

import (
	"time"

	"github.com/busdk/bus-agent/agent"
)

// lateMessage is how long after the end of a turn its message can come. It is told
// by another goroutine than what the agent does.
const lateMessage = time.Second

// A turn begins with its message, or with the first thing that the agent does
// before that message is told.
type turn struct {
	*invocation
	said bool // the message was told
}

// message begins a turn of a session, or belongs to the one that is under way or
// has just ended.
func (r *recording) message(text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.turn == nil && time.Since(r.unsaid) < lateMessage:
		r.unsaid = time.Time{}
		return nil
	case r.turn == nil:
		r.beginTurn()
	case r.turn.said:
		r.turn.span.AddEvent("bus_agent.message")
		return nil
	}
	r.turn.said = true
	r.turn.input(r, text)
	return nil
}

func (r *recording) beginTurn() {
	r.turn = &turn{invocation: r.invokeAgent(r.whole.ctx)}
	r.answer.clear()
}

// beginsTurn reports whether e is a doing of the agent.
func beginsTurn(e *agent.Event) bool {
	switch e.Kind {
	case agent.KindText, agent.KindThinking, agent.KindToolCall, agent.KindPlan, agent.KindRetry:
		return true
	case agent.KindResult:
		return e.Failed
	}
	return false
}

// turnOver ends the turn as e says.
func (r *recording) turnOver(e *agent.Event) {
	if r.turn == nil {
		r.unsaid = time.Now()
		return
	}
	if r.content && e.Text != "" && !e.Failed {
		r.answer.clear()
		r.answer.add(e)
	}
	kind, description := "", ""
	switch {
	case e.Interrupted:
		r.turn.span.SetAttributes(keyInterrupted.Bool(true))
	case e.Failed && e.Failure != "":
		kind = string(e.Failure)
	case e.Failed:
		kind = errorType(agent.ErrAgent)
	}
	if kind != "" && r.content {
		description = r.mask.text(e.Text)
	}
	r.endTurn(kind, description)
}

func (r *recording) endTurn(kind, description string) {
	t := r.turn
	t.span.SetAttributes(r.known()...)
	usage := r.usageOfTurn()
	if usage != nil {
		t.span.SetAttributes(usageAttributes(usage)...)
	}
	t.output(r, r.answer.String(), kind)
	r.count(t.ctx, t.finish(kind, description), kind, usage)
	r.turn, r.before, r.unsaid = nil, r.usage, time.Time{}
	if !t.said {
		r.unsaid = time.Now()
	}
}

// usageOfTurn returns what the turn added to that of the session; nil where the
// runtime has told of nothing.
func (r *recording) usageOfTurn() *agent.Usage {
	if r.usage == r.before {
		return nil
	}
	u := agent.Usage{
		Input: max(0, r.usage.Input-r.before.Input), Cached: max(0, r.usage.Cached-r.before.Cached),
		Output: max(0, r.usage.Output-r.before.Output), Reasoning: max(0, r.usage.Reasoning-r.before.Reasoning),
		// Of the first turn of a session that goes on, the rest is older.
		Cumulative: r.usage.Cumulative && r.resumed && r.before == (agent.Usage{}),
	}
	if r.usage.CostUSD != nil {
		cost := *r.usage.CostUSD
		if r.before.CostUSD != nil {
			cost = max(0, cost-*r.before.CostUSD)
		}
		u.CostUSD = &cost
	}
	return &u
}
