package acp

import (
	"encoding/json"
	"math"

	"github.com/busdk/bus-agent/agent"
)

// count adds the tokens of a turn and reports whether there are any.
func (e *Engine) count(r *promptResult) bool {
	turn := r.Usage.usage()
	if turn.Input <= 0 && turn.Output <= 0 {
		turn = agent.Usage{Input: r.Meta.Quota.Tokens.Input, Output: r.Meta.Quota.Tokens.Output}
	}
	if turn.Input <= 0 && turn.Output <= 0 {
		turn = e.decoder.spent
	}
	e.usage = plus(e.usage, turn)
	return turn.Input > 0 || turn.Output > 0
}

// usage returns the tokens as agent.Usage has them. Some agents count cached tokens and
// thoughts in the input and the output, others do not; the total shows it.
func (t tokens) usage() agent.Usage {
	u := agent.Usage{Input: t.Input, Output: t.Output, Cached: t.CachedRead, Reasoning: t.Thought}
	rest := t.Total - t.Input - t.Output
	if cached := sum(t.CachedRead, t.CachedWrite); cached <= rest {
		u.Input = sum(u.Input, cached)
		rest -= cached
	}
	if t.Thought <= rest {
		u.Output = sum(u.Output, t.Thought)
	}
	return u
}

// plus returns total with the tokens of more.
func plus(total, more agent.Usage) agent.Usage {
	total.Input = sum(total.Input, more.Input)
	total.Output = sum(total.Output, more.Output)
	total.Cached = sum(total.Cached, more.Cached)
	total.Reasoning = sum(total.Reasoning, more.Reasoning)
	return total
}

// sum adds what an agent reports as consumed, which can be anything.
func sum(total, more int64) int64 {
	if more < 0 || total > math.MaxInt64-more {
		return total
	}
	return total + more
}

// measured takes the size of the context and the cost of the session. An agent counts
// the cost from the beginning of a session, also when it resumes one: the cost of
// earlier turns is known if the agent reports it before the next turn, and otherwise
// that of the later ones is not.
func (e *Engine) measured(params json.RawMessage, earlier bool) bool {
	var n struct {
		Update measure `json:"update"`
	}
	if json.Unmarshal(params, &n) != nil {
		return false
	}
	e.usage.Context, e.usage.ContextSize = n.Update.Used, n.Update.Size
	cost := n.Update.Cost
	switch {
	case cost == nil || cost.Currency != "USD":
	case earlier:
		e.costBefore = &cost.Amount
	case e.costBefore != nil:
		amount := max(0, cost.Amount-*e.costBefore)
		e.usage.CostUSD = &amount
	}
	if !earlier {
		e.emitUsage()
	}
	return true
}

func (e *Engine) emitUsage() {
	usage := e.usage
	e.emit(&agent.Event{Kind: agent.KindUsage, Usage: &usage})
}
