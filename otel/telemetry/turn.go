package telemetry

import (
	"github.com/busdk/bus-agent/agent"
)

// message begins a turn of a session, or adds to the one that is under way.
func (r *recording) message(text string) error {
	if r.turn != nil {
		r.turn.span.AddEvent("bus_agent.message")
		return nil
	}
	r.turn = r.invokeAgent(r.whole.ctx)
	r.turn.input(r, text)
	r.answer.clear()
	return nil
}

// turnOver ends the turn as e says.
func (r *recording) turnOver(e *agent.Event) {
	if r.turn == nil { // nobody said anything, or not to us
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
		kind = errorType(&agent.Error{Kind: agent.ErrAgent, Err: agent.ErrAgent})
	}
	if kind != "" && r.content {
		description = r.mask.text(e.Text)
	}
	r.turnEnded(kind, description)
}

func (r *recording) turnEnded(kind, description string) {
	t := r.turn
	t.span.SetAttributes(r.known()...)
	usage := r.usageOfTurn()
	if usage != nil {
		t.span.SetAttributes(usageAttributes(usage)...)
	}
	t.output(r, r.answer.String(), kind)
	r.count(t.ctx, t.finish(kind, description), kind, usage)
	r.turn = nil
	r.before = r.usage
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

// denied marks what the agent was not permitted.
func (r *recording) denied(e *agent.Event) {
	span := r.current().span
	if e.Tool != nil {
		if c := r.tools.open[clip(e.Tool.ID, maxWord)]; c != nil {
			span = c.span
		}
	}
	span.AddEvent("bus_agent.denied")
}
