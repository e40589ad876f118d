package cursor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// decoder reads the lines of `cursor-agent -p --output-format stream-json`.
type decoder struct {
	// said is set once the agent has written text.
	said bool
	// partial is set once text came in pieces, as with --stream-partial-output. The
	// CLI then repeats the whole text, more than once.
	partial bool
}

var _ formatters.Decoder = (*decoder)(nil)

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
	switch l.Type {
	case "system":
		if l.Subtype == "init" {
			return append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: l.SessionID, Model: l.Model})
		}
	case "user":
		return append(events, heartbeat) // the prompt
	case "assistant":
		if l.Message != nil {
			return append(events, d.assistant(&l))
		}
	case "thinking":
		switch l.Subtype {
		case "delta":
			return append(events, agent.Event{Kind: agent.KindThinking, Text: l.Text, Delta: true})
		case "completed":
			return append(events, heartbeat)
		}
	case "tool_call":
		if extended, ok := l.tool(events); ok {
			return extended
		}
	case "result":
		return d.result(&l, events)
	}
	return append(events, unknown(raw))
}

var heartbeat = agent.Event{Kind: agent.KindHeartbeat}

func unknown(raw []byte) agent.Event {
	return agent.Event{Kind: agent.KindRaw, Text: string(raw)}
}

// bare reads a line that is not JSON. Some refusals print only such a line.
func bare(raw []byte) agent.Event {
	text := string(raw)
	if failure := classify(text); failure == agent.FailureAuthentication || strings.Contains(text, "Workspace Trust Required") {
		return agent.Event{Kind: agent.KindResult, Failed: true, Failure: failure, Text: text}
	}
	return unknown(raw)
}

func (d *decoder) assistant(l *line) agent.Event {
	delta := l.Timestamp != 0 && l.ModelCallID == ""
	text := l.Message.text()
	if d.partial && !delta || text == "" {
		return heartbeat
	}
	d.said, d.partial = true, d.partial || delta
	return agent.Event{Kind: agent.KindText, Text: text, Delta: delta}
}

func (d *decoder) result(l *line, events []agent.Event) []agent.Event {
	if usage := l.tokens(); usage != nil {
		events = append(events, agent.Event{Kind: agent.KindUsage, Usage: usage})
	}
	e := agent.Event{Kind: agent.KindResult, Failed: l.IsError || l.Subtype != "success"}
	switch {
	case e.Failed:
		e.Text = cmp.Or(l.Result, strings.ReplaceAll(l.Subtype, "_", " "))
		e.Failure = classify(l.Result)
	case !d.said:
		// Otherwise it is every text of the agent in a row, not the answer.
		e.Text = l.Result
	}
	return append(events, e)
}

// classify returns the class of a failure by its text, which is all that is known.
func classify(text string) agent.Failure {
	text = strings.ToLower(text)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
	}
	switch {
	case has("not authenticated", "authentication required", "not logged in", "unauthenticated", "invalid api key"):
		return agent.FailureAuthentication
	case has("rate limit", "usage limit", "quota"):
		return agent.FailureQuota
	}
	return ""
}

// recognize reports whether only the Cursor CLI writes the line: it has the source of the
// API key, or the form of its tool calls.
func recognize(raw []byte) bool {
	var l line
	if json.Unmarshal(raw, &l) != nil || l.SessionID == "" || l.UUID != "" {
		return false
	}
	switch l.Type {
	case "system":
		return l.Subtype == "init" && isString(l.APIKeySource)
	case "tool_call":
		return l.ToolCall != nil
	case "result":
		return isString(l.RequestID)
	}
	return false
}
