package more

import (
	"cmp"
	"encoding/json"

	"github.com/busdk/bus-agent/agent"
)

// opencodeDecoder reads the lines of `opencode run --format json`, and of Kilo, which is
// made from it.
type opencodeDecoder struct {
	session string
	spent   agent.Usage
	cost    float64
	// called means that this step has a tool call of opencode, so another step follows.
	called bool
	// ended means that a result was reported. With a step after it, as for compaction, the
	// turn continues. Until the next result that is reported as a background task, because
	// a run ends soon after a result.
	ended, continued bool
}

type opencodeLine struct {
	Type      string       `json:"type"`
	SessionID string       `json:"sessionID"`
	Part      opencodePart `json:"part"`
	Error     struct {
		Name string `json:"name"`
		Data struct {
			Message    string `json:"message"`
			StatusCode int    `json:"statusCode"`
		} `json:"data"`
	} `json:"error"`
}

type opencodePart struct {
	MessageID string `json:"messageID"`
	Text      string `json:"text"` // text, reasoning

	CallID string `json:"callID"` // tool
	Tool   string `json:"tool"`
	State  struct {
		Status   string          `json:"status"`
		Input    json.RawMessage `json:"input"`
		Output   string          `json:"output"`
		Error    string          `json:"error"`
		Metadata struct {
			Exit *int `json:"exit"` // bash
		} `json:"metadata"`
	} `json:"state"`

	Metadata struct {
		ProviderExecuted bool `json:"providerExecuted"` // tool
	} `json:"metadata"`

	Reason string  `json:"reason"` // step-finish
	Cost   float64 `json:"cost"`
	Tokens struct {
		Input     int64 `json:"input"`  // without those of the cache
		Output    int64 `json:"output"` // without reasoning
		Reasoning int64 `json:"reasoning"`
		Cache     struct {
			Read  int64 `json:"read"`
			Write int64 `json:"write"`
		} `json:"cache"`
	} `json:"tokens"`
}

func (d *opencodeDecoder) line(raw []byte, events []agent.Event) ([]agent.Event, bool) {
	var l opencodeLine
	if json.Unmarshal(raw, &l) != nil || l.SessionID == "" && l.Type != "error" {
		return events, false
	}
	if l.SessionID != "" && l.SessionID != d.session {
		d.session = l.SessionID
		events = append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: l.SessionID})
	}
	p := &l.Part
	switch l.Type {
	case "step_start":
		d.called = false
		if d.ended {
			d.ended, d.continued = false, true
			events = append(events, agent.Event{Kind: agent.KindHeartbeat, Background: new(1)})
		}
	case "text":
		events = append(events, text(p.MessageID, p.Text))
	case "reasoning":
		events = append(events, thinking(p.MessageID, p.Text))
	case "tool_use": // its end
		d.called = d.called || !p.Metadata.ProviderExecuted
		result := toolResult(p.CallID, p.State.Output+p.State.Error, p.State.Status == "error")
		result.Tool.ExitCode = p.State.Metadata.Exit
		events = append(events, toolCall(p.CallID, p.Tool, p.State.Input), result)
	case "step_finish":
		events = d.finished(p, events)
	case "error":
		e := failed(cmp.Or(l.Error.Data.Message, l.Error.Name))
		e.Failure = failureOf(l.Error.Data.StatusCode)
		events = d.result(e, events)
	default:
		return events, false
	}
	return events, true
}

// finished appends the events of the end of a step. By the rule of opencode, the turn ends
// with a step that has no tool calls, whatever reason the provider gives.
func (d *opencodeDecoder) finished(p *opencodePart, events []agent.Event) []agent.Event {
	t := &p.Tokens
	add(&d.spent, agent.Usage{
		Input:  t.Input + t.Cache.Read + t.Cache.Write,
		Cached: t.Cache.Read, Output: t.Output + t.Reasoning, Reasoning: t.Reasoning,
	})
	d.cost += p.Cost
	spent := d.spent
	if d.cost > 0 {
		cost := d.cost
		spent.CostUSD = &cost
	}
	events = append(events, used(spent)...)
	if d.called {
		return events
	}
	switch p.Reason {
	case "tool-calls", "unknown":
		return events
	case "length":
		return d.result(failed("the answer reached the limit of the model's output"), events)
	case "content-filter":
		return d.result(failed("the provider's content filter blocked the answer"), events)
	}
	return d.result(agent.Event{Kind: agent.KindResult}, events)
}

// result appends e, the end of the turn.
func (d *opencodeDecoder) result(e agent.Event, events []agent.Event) []agent.Event {
	if d.continued {
		d.continued = false
		events = append(events, agent.Event{Kind: agent.KindHeartbeat, Background: new(0)})
	}
	d.ended = true
	return append(events, e)
}
