package cursor

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// decoder reads the lines of `cursor-agent -p --output-format stream-json`.
type decoder struct {
	// said is set once the agent has said anything.
	said bool
	// partial is set once text came in pieces, which the CLI does with
	// --stream-partial-output. It then says the whole again, more than once.
	partial bool
}

var _ formatters.Decoder = (*decoder)(nil)

// line is what any of the lines can hold.
type line struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`

	Model       string   `json:"model"`         // system init
	Message     *message `json:"message"`       // assistant, user
	Text        string   `json:"text"`          // thinking
	Timestamp   int64    `json:"timestamp_ms"`  // assistant
	ModelCallID string   `json:"model_call_id"` // assistant

	CallID   string          `json:"call_id"` // tool_call
	ToolCall json.RawMessage `json:"tool_call"`

	IsError bool   `json:"is_error"` // result
	Result  string `json:"result"`
	Usage   *usage `json:"usage"`
}

type message struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
}

// usage is not documented; newer versions send it.
type usage struct {
	Input      int64 `json:"inputTokens"`
	Output     int64 `json:"outputTokens"`
	CacheRead  int64 `json:"cacheReadTokens"`
	CacheWrite int64 `json:"cacheWriteTokens"`
}

func (d *decoder) Decode(raw []byte, events []agent.Event) []agent.Event {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return events
	}
	if raw[0] != '{' {
		return append(events, bare(raw))
	}
	var l line
	if json.Unmarshal(raw, &l) != nil {
		return append(events, unknown(raw))
	}
	switch {
	case l.Type == "system" && l.Subtype == "init":
		return append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: l.SessionID, Model: l.Model})
	case l.Type == "user":
		return append(events, heartbeat) // the prompt
	case l.Type == "assistant" && l.Message != nil:
		return append(events, d.assistant(&l))
	case l.Type == "thinking" && l.Subtype == "delta":
		return append(events, agent.Event{Kind: agent.KindThinking, Text: l.Text, Delta: true})
	case l.Type == "thinking" && l.Subtype == "completed":
		return append(events, heartbeat)
	case l.Type == "tool_call":
		if extended, ok := l.tool(events); ok {
			return extended
		}
	case l.Type == "result":
		return d.result(&l, events)
	}
	return append(events, unknown(raw))
}

var heartbeat = agent.Event{Kind: agent.KindHeartbeat}

func unknown(raw []byte) agent.Event {
	return agent.Event{Kind: agent.KindRaw, Text: string(raw)}
}

// bare reads a line that is no JSON. With some refusals it is all there is.
func bare(raw []byte) agent.Event {
	text := string(raw)
	if failure := classify(text); failure == agent.FailureAuthentication || strings.Contains(text, "Workspace Trust Required") {
		return agent.Event{Kind: agent.KindResult, Failed: true, Failure: failure, Text: text}
	}
	return unknown(raw)
}

func (d *decoder) assistant(l *line) agent.Event {
	delta := l.Timestamp != 0 && l.ModelCallID == ""
	if d.partial && !delta {
		return heartbeat
	}
	var text strings.Builder
	for _, block := range l.Message.Content {
		if block.Type == "text" {
			text.WriteString(block.Text)
		}
	}
	if text.Len() == 0 {
		return heartbeat
	}
	d.said, d.partial = true, d.partial || delta
	return agent.Event{Kind: agent.KindText, Text: text.String(), Delta: delta}
}

func (d *decoder) result(l *line, events []agent.Event) []agent.Event {
	if u := l.Usage; u != nil {
		events = append(events, agent.Event{Kind: agent.KindUsage, Usage: &agent.Usage{
			Input: u.Input + u.CacheRead + u.CacheWrite, Cached: u.CacheRead, Output: u.Output,
		}})
	}
	e := agent.Event{Kind: agent.KindResult, Failed: l.IsError || l.Subtype != "success"}
	switch {
	case e.Failed:
		e.Text = l.Result
		if e.Text == "" {
			e.Text = strings.ReplaceAll(l.Subtype, "_", " ")
		}
		e.Failure = classify(l.Result)
	case !d.said:
		// Otherwise it is all the agent said, one after the other, and so not
		// its answer.
		e.Text = l.Result
	}
	return append(events, e)
}

// classify reads the class of a failure from its text: there is nothing else.
func classify(text string) agent.Failure {
	text = strings.ToLower(text)
	has := func(words ...string) bool {
		for _, word := range words {
			if strings.Contains(text, word) {
				return true
			}
		}
		return false
	}
	switch {
	case has("not authenticated", "authentication required", "not logged in", "unauthenticated", "invalid api key"):
		return agent.FailureAuthentication
	case has("rate limit", "usage limit", "quota"):
		return agent.FailureQuota
	}
	return ""
}

// recognize knows the lines no other runtime writes: where the API key comes
// from and the shape of tool calls.
func recognize(raw []byte) bool {
	var l struct {
		Type         string          `json:"type"`
		Subtype      string          `json:"subtype"`
		SessionID    string          `json:"session_id"`
		UUID         string          `json:"uuid"`
		APIKeySource *string         `json:"apiKeySource"`
		ToolCall     json.RawMessage `json:"tool_call"`
		RequestID    *string         `json:"request_id"`
	}
	if json.Unmarshal(raw, &l) != nil || l.SessionID == "" || l.UUID != "" {
		return false
	}
	switch l.Type {
	case "system":
		return l.Subtype == "init" && l.APIKeySource != nil
	case "tool_call":
		return l.ToolCall != nil
	case "result":
		return l.RequestID != nil
	}
	return false
}
