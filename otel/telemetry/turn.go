package telemetry

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/capture"
)

// A turn of a session begins with its message or with the first event of the agent,
// whichever is recorded first.
type turn struct {
	*invocation
	hasMessage bool
}

// message begins a turn, or is part of the current one. A message is recorded before it
// is sent, so not after its turn.
func (r *recording) message(m agent.UserMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.turn == nil:
		r.beginTurn()
	case r.turn.hasMessage:
		r.turn.span.AddEvent("bus_agent.message")
		return nil
	}
	r.turn.hasMessage = true
	r.turn.input(r, m.Text)
	return nil
}

func (r *recording) beginTurn() {
	r.turn = &turn{invocation: r.invokeAgent(r.whole.ctx)}
	r.answer = capture.Answer{}
}

// beginsTurn reports whether e is an activity of the agent.
func beginsTurn(e *agent.Event) bool {
	switch e.Kind {
	case agent.KindText, agent.KindThinking, agent.KindToolCall, agent.KindPlan, agent.KindRetry:
		return true
	case agent.KindResult:
		return e.Failed
	}
	return false
}

// turnResult ends the turn with the result e.
func (r *recording) turnResult(e *agent.Event) {
	if r.turn == nil {
		return
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
	r.endTurn(e, kind, description)
}

// endTurn ends the turn; result is nil if the agent reported none.
func (r *recording) endTurn(result *agent.Event, kind, description string) {
	t := r.turn
	t.span.SetAttributes(r.reported()...)
	usage := r.usageOfTurn()
	if usage != nil {
		t.span.SetAttributes(usageAttributes(usage)...)
	}
	text, _ := r.answer.Text(result)
	t.output(r, text, kind)
	r.count(t.ctx, t.finish(kind, description), kind, usage)
	r.turn, r.before = nil, r.usage
}

// usageOfTurn returns the usage of the current turn, or nil if the runtime reported
// none.
func (r *recording) usageOfTurn() *agent.Usage {
	if r.usage == r.before {
		return nil
	}
	u := agent.Usage{
		Input: max(0, r.usage.Input-r.before.Input), Cached: max(0, r.usage.Cached-r.before.Cached),
		Output: max(0, r.usage.Output-r.before.Output), Reasoning: max(0, r.usage.Reasoning-r.before.Reasoning),
		// In the first turn of a resumed session, this includes earlier usage.
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
