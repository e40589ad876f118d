package cursor

import (
	"bytes"
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

	line line // reused
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
	l := &d.line
	if !l.read(raw) {
		return append(events, unknown(raw))
	}
	switch string(l.kind.Bytes()) {
	case "system":
		if l.subtype.Is("init") {
			return append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: l.sessionID.String(), Model: l.model.String()})
		}
	case "user":
		return append(events, heartbeat) // the prompt
	case "assistant":
		if l.hasMessage {
			return append(events, d.assistant(l))
		}
	case "thinking":
		switch {
		case l.subtype.Is("delta"):
			return append(events, agent.Event{Kind: agent.KindThinking, Text: l.text.String(), Delta: true})
		case l.subtype.Is("completed"):
			return append(events, heartbeat)
		}
	case "tool_call":
		if extended, ok := l.tool(events); ok {
			return extended
		}
	case "result":
		return d.result(l, events)
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
	delta := l.timestamp != 0 && l.modelCallID.IsEmpty()
	if d.partial && !delta || l.said == "" {
		return heartbeat
	}
	d.said, d.partial = true, d.partial || delta
	return agent.Event{Kind: agent.KindText, Text: l.said, Delta: delta}
}

func (d *decoder) result(l *line, events []agent.Event) []agent.Event {
	if l.usage != nil {
		events = append(events, agent.Event{Kind: agent.KindUsage, Usage: l.usage})
	}
	e := agent.Event{Kind: agent.KindResult, Failed: l.isError || !l.subtype.Is("success")}
	switch {
	case e.Failed:
		e.Text = l.result.String()
		e.Failure = classify(e.Text)
		if e.Text == "" {
			e.Text = strings.ReplaceAll(l.subtype.String(), "_", " ")
		}
	case !d.said:
		// Otherwise it is all the agent said, one after the other, and so not
		// its answer.
		e.Text = l.result.String()
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
	var l line
	if !l.read(raw) || l.sessionID.IsEmpty() || l.hasUUID {
		return false
	}
	switch string(l.kind.Bytes()) {
	case "system":
		return l.subtype.Is("init") && l.hasKeySource
	case "tool_call":
		return l.toolCall != nil
	case "result":
		return l.hasRequestID
	}
	return false
}
