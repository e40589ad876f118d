package gemini

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// decoder reads the lines of `gemini -o stream-json`.
type decoder struct {
	// messages counts the messages: the lines have no IDs, and what follows a
	// tool call is another one.
	messages int
	open     bool // the message can be continued
	session  string
	model    string
	problem  string // the last error before the result
}

var _ formatters.Decoder = (*decoder)(nil)

// line is what any of the lines can hold.
type line struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id"` // init
	Model     string `json:"model"`

	Role    string `json:"role"` // message
	Content string `json:"content"`
	Delta   bool   `json:"delta"`

	ToolName   string          `json:"tool_name"` // tool_use
	ToolID     string          `json:"tool_id"`   // tool_result too
	Parameters json.RawMessage `json:"parameters"`

	Status string   `json:"status"` // tool_result, result
	Output string   `json:"output"`
	Error  *problem `json:"error"`
	Stats  *stats   `json:"stats"`

	Severity string `json:"severity"` // error
	Message  string `json:"message"`
}

type problem struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

type stats struct {
	modelStats
	Models map[string]modelStats `json:"models"`
}

type modelStats struct {
	Total  int64 `json:"total_tokens"`
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	Cached int64 `json:"cached"`
}

func (d *decoder) Decode(raw []byte, events []agent.Event) []agent.Event {
	if len(bytes.TrimSpace(raw)) == 0 {
		return events
	}
	var l line
	if json.Unmarshal(raw, &l) == nil {
		switch l.Type {
		case "init":
			return append(events, d.init(&l))
		case "message":
			return append(events, d.message(&l))
		case "tool_use":
			d.open = false
			return append(events, agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: l.ToolID, Name: l.ToolName, Input: l.Parameters}})
		case "tool_result":
			d.open = false
			return append(events, l.toolResult())
		case "error":
			d.problem = l.Message
			return append(events, agent.Event{Kind: agent.KindWarning, Text: l.Message, Failure: classify("", l.Message)})
		case "result":
			return d.result(&l, events)
		}
	}
	return append(events, agent.Event{Kind: agent.KindRaw, Text: string(raw)})
}

// auto is what the CLI calls the model when it chooses one itself.
const auto = "auto"

func (d *decoder) init(l *line) agent.Event {
	d.session, d.model, d.open, d.problem = l.SessionID, l.Model, false, ""
	if d.model == auto {
		d.model = ""
	}
	return agent.Event{Kind: agent.KindSessionStarted, SessionID: d.session, Model: d.model}
}

// message is what the model says. The prompt is repeated as the user's, and is
// no more than a sign of life.
func (d *decoder) message(l *line) agent.Event {
	if l.Role != "assistant" {
		d.open = false
		return agent.Event{Kind: agent.KindHeartbeat}
	}
	if !d.open || !l.Delta {
		d.messages++
	}
	d.open = l.Delta
	return agent.Event{Kind: agent.KindText, MessageID: strconv.Itoa(d.messages), Delta: l.Delta, Text: l.Content}
}

func (l *line) toolResult() agent.Event {
	output := l.Output
	if output == "" && l.Error != nil {
		output = l.Error.Message
	}
	return agent.Event{
		Kind: agent.KindToolResult, Failed: l.Status != "success",
		Tool: &agent.Tool{ID: l.ToolID, Output: output},
	}
}

func (d *decoder) result(l *line, events []agent.Event) []agent.Event {
	if l.Stats != nil {
		if model := l.Stats.model(); d.model == "" && model != "" {
			d.model = model
			events = append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: d.session, Model: model})
		}
		if s := l.Stats; s.Total > 0 {
			// Its output tokens leave the thoughts out; the total has them.
			thoughts := max(s.Total-s.Input-s.Output, 0)
			events = append(events, agent.Event{Kind: agent.KindUsage, Usage: &agent.Usage{
				Input: s.Input, Cached: s.Cached, Output: s.Output + thoughts, Reasoning: thoughts,
			}})
		}
	}
	e := agent.Event{Kind: agent.KindResult, Failed: l.Status != "success"}
	if e.Failed {
		e.Text = d.problem
		if l.Error != nil {
			e.Text = l.Error.Message
			e.Failure = classify(l.Error.Type, l.Error.Message)
		}
	}
	d.open, d.problem = false, ""
	return append(events, e)
}

// model returns the model that wrote most: small ones only choose it.
func (s *stats) model() string {
	var most string
	for _, name := range slices.Sorted(maps.Keys(s.Models)) {
		if name != auto && (most == "" || s.Models[name].Output > s.Models[most].Output) {
			most = name
		}
	}
	return most
}

// classify reads the class of a failure from the error's type, or from the API
// error that its message holds as JSON.
func classify(kind, message string) agent.Failure {
	if kind == "FatalAuthenticationError" {
		return agent.FailureAuthentication
	}
	_, code, ok := strings.Cut(message, `"code":`)
	if !ok {
		return ""
	}
	code = strings.TrimLeft(code, " ")
	switch {
	case strings.HasPrefix(code, "401"), strings.HasPrefix(code, "403"):
		return agent.FailureAuthentication
	case strings.HasPrefix(code, "429"):
		return agent.FailureQuota
	}
	return ""
}

// recognize knows the lines no other runtime writes: all of them have a time,
// and none an ID of its own.
func recognize(raw []byte) bool {
	var l struct {
		line
		Timestamp string `json:"timestamp"`
		UUID      string `json:"uuid"`
	}
	if json.Unmarshal(raw, &l) != nil || l.Timestamp == "" || l.UUID != "" {
		return false
	}
	switch l.Type {
	case "init":
		return l.SessionID != "" && l.Model != ""
	case "message":
		return l.Role == "user" || l.Role == "assistant"
	case "tool_use":
		return l.ToolID != "" && l.ToolName != ""
	case "tool_result":
		return l.ToolID != "" && l.Status != ""
	case "error":
		return l.Severity != ""
	case "result":
		return l.Status != "" && l.Stats != nil
	}
	return false
}
