package more

import (
	"encoding/json"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// qwenDecoder reads the lines of `qwen --output-format stream-json`.
type qwenDecoder struct {
	// spent sums up the tokens of the answers. Those of the result are of the whole
	// session.
	spent agent.Usage
}

type qwenLine struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Model     string `json:"model"`              // system
	Parent    string `json:"parent_tool_use_id"` // "" for the main agent
	Message   struct {
		ID      string  `json:"id"`
		Content content `json:"content"`
		Usage   struct {
			Input  int64 `json:"input_tokens"` // with those of the cache
			Output int64 `json:"output_tokens"`
			Cached int64 `json:"cache_read_input_tokens"`
		} `json:"usage"`
	} `json:"message"`
	Data struct { // system, retry
		Reason     string `json:"reason"`
		Attempt    int    `json:"attempt"`
		MaxRetries int    `json:"maxRetries"`
	} `json:"data"`
	IsError bool   `json:"is_error"` // result
	Result  string `json:"result"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (d *qwenDecoder) line(raw []byte, events []agent.Event) ([]agent.Event, bool) {
	var l qwenLine
	if json.Unmarshal(raw, &l) != nil {
		return events, false
	}
	before := len(events)
	switch l.Type {
	case "system":
		switch l.Subtype {
		case "init":
			events = append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: l.SessionID, Model: l.Model})
		case "retry":
			events = append(events, agent.Event{Kind: agent.KindRetry, Text: l.Data.Reason, Attempt: l.Data.Attempt, MaxAttempts: l.Data.MaxRetries})
		}
	case "assistant":
		u := l.Message.Usage
		add(&d.spent, agent.Usage{Input: u.Input, Cached: u.Cached, Output: u.Output})
		events = l.said(events)
	case "user":
		events = l.said(events)
	case "stream_event": // also the state of its goals, whatever is streamed
	case "result":
		events = append(events, used(d.spent)...)
		if l.IsError {
			events = append(events, failed(l.Error.Message))
		} else {
			events = append(events, agent.Event{Kind: agent.KindResult, Text: l.Result})
		}
	default:
		return events, false
	}
	for i := range events[before:] {
		events[before+i].Subagent = l.Parent
	}
	return events, true
}

// said appends the events of a message. Texts of the user are those of the CLI.
func (l *qwenLine) said(events []agent.Event) []agent.Event {
	for _, p := range l.Message.Content {
		switch p.Type {
		case "text":
			switch {
			case l.Type == "user":
			case strings.HasPrefix(p.Text, "[API Error: "): // of the CLI; the result repeats it
				events = append(events, agent.Event{Kind: agent.KindWarning, Text: p.Text})
			default:
				events = append(events, text(l.Message.ID, p.Text))
			}
		case "thinking":
			events = append(events, thinking(l.Message.ID, p.Thinking))
		case "tool_use":
			events = append(events, toolCall(p.ID, p.Name, p.Input))
		case "tool_result":
			events = append(events, toolResult(p.ToolUseID, p.Content.text(), p.IsError))
		}
	}
	return events
}

// recognizeQwen reports whether the line is the first of an output: unlike one of Claude
// Code it has the ID of the session twice.
func recognizeQwen(raw []byte) bool {
	var l struct {
		Type      string `json:"type"`
		Subtype   string `json:"subtype"`
		SessionID string `json:"session_id"`
		UUID      string `json:"uuid"`
	}
	return json.Unmarshal(raw, &l) == nil && l.Type == "system" && l.Subtype == "init" && l.SessionID != "" && l.UUID == l.SessionID
}
