package more

import (
	"cmp"
	"encoding/json"

	"github.com/busdk/bus-agent/agent"
)

// droidDecoder reads the lines of `droid exec --output-format stream-json`.
type droidDecoder struct {
	problem string // the last error before the one that ends the run
	answers int    // counts those of the model
	answer  string // the ID of the last one
}

type droidLine struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Model     string `json:"model"` // system, init

	Role string `json:"role"` // message
	ID   string `json:"id"`   // of a message or a tool call
	Text string `json:"text"` // reasoning too

	MessageID string `json:"messageId"` // tool_call

	ToolName   string          `json:"toolName"`
	Parameters json.RawMessage `json:"parameters"`
	IsError    bool            `json:"isError"`
	Value      json.RawMessage `json:"value"`
	Error      struct {
		Message string `json:"message"`
	} `json:"error"`

	Source  string `json:"source"` // error
	Message string `json:"message"`

	FinalText string `json:"finalText"` // completion
	NumTurns  int    `json:"numTurns"`  // of the session
	Usage     struct {
		Input         int64 `json:"input_tokens"` // without those of the cache
		Output        int64 `json:"output_tokens"`
		CacheRead     int64 `json:"cache_read_input_tokens"`
		CacheCreation int64 `json:"cache_creation_input_tokens"`
	} `json:"usage"`
}

func (d *droidDecoder) line(raw []byte, events []agent.Event) ([]agent.Event, bool) {
	var l droidLine
	if json.Unmarshal(raw, &l) != nil {
		return events, false
	}
	switch l.Type {
	case "system":
		if l.Subtype == "init" {
			events = append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: l.SessionID, Model: l.Model})
		}
	case "message":
		if l.Role == "assistant" {
			d.count(l.ID)
			events = append(events, text(l.ID, l.Text))
		}
	case "reasoning":
		d.count(l.ID)
		events = append(events, thinking(l.ID, l.Text))
	case "tool_call":
		d.count(l.MessageID)
		events = append(events, toolCall(l.ID, l.ToolName, l.Parameters))
	case "tool_result":
		events = append(events, toolResult(l.ID, cmp.Or(valueOf(l.Value), l.Error.Message), l.IsError))
	case "error":
		if l.Source != "cli" {
			d.problem = l.Message
			return append(events, agent.Event{Kind: agent.KindWarning, Text: l.Message}), true
		}
		events = append(events, failed(cmp.Or(d.problem, l.Message)))
	case "completion":
		if l.NumTurns == d.answers { // otherwise they are those of the whole session
			u := l.Usage
			events = append(events, used(agent.Usage{Input: u.Input + u.CacheRead + u.CacheCreation, Cached: u.CacheRead, Output: u.Output})...)
		}
		events = append(events, agent.Event{Kind: agent.KindResult, Text: l.FinalText})
	default:
		return events, false
	}
	return events, true
}

// count counts the answer of the model with an ID, parts of which can be in several lines.
func (d *droidDecoder) count(id string) {
	if id != d.answer {
		d.answer = id
		d.answers++
	}
}

// valueOf returns the text of a value in JSON, or the JSON of any other value.
func valueOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return string(raw)
	}
	return text
}
