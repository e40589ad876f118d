package rest

import (
	"bytes"
	"encoding/json"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// decoder reads the lines of bus-agent-rest.
type decoder struct{}

var _ formatters.Decoder = decoder{}

// messageID is that of the only message there is.
const messageID = "answer"

func (decoder) Decode(raw []byte, events []agent.Event) []agent.Event {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return events
	}
	var l line
	if json.Unmarshal(raw, &l) != nil {
		l.Type = ""
	}
	e := agent.Event{Kind: agent.KindRaw, Text: string(raw)}
	switch l.Type {
	case "answer", "start":
		e = agent.Event{Kind: agent.KindSessionStarted, Model: l.Model}
		if l.Model == "" && l.Type == "answer" {
			e.Kind = agent.KindHeartbeat
		}
	case "text":
		e = agent.Event{Kind: agent.KindText, MessageID: messageID, Delta: true, Text: l.Text}
	case "thinking":
		e = agent.Event{Kind: agent.KindThinking, MessageID: messageID, Delta: true, Text: l.Text}
	case "retry":
		e = agent.Event{Kind: agent.KindRetry, Text: l.Text, Failure: l.class(), Attempt: l.Attempt, MaxAttempts: l.MaxAttempts}
	case "warning":
		e = agent.Event{Kind: agent.KindWarning, Text: l.Text}
	case "usage":
		e = agent.Event{Kind: agent.KindUsage, Usage: &agent.Usage{
			Input: l.Input, Cached: l.Cached, Output: l.Output, Reasoning: l.Reasoning, CostUSD: l.CostUSD,
		}}
	case "result":
		e = agent.Event{Kind: agent.KindResult, Text: l.Text}
		if l.Error != "" {
			e = agent.Event{Kind: agent.KindResult, Failed: true, Failure: l.class(), Text: l.Error}
		}
	}
	return append(events, e)
}

// recognize returns what knows the first line of a service.
func recognize(id string) func([]byte) bool {
	return func(raw []byte) bool {
		var l line
		return json.Unmarshal(raw, &l) == nil && l.Type == "start" && l.Agent == executable && l.Provider == id
	}
}
