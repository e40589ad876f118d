package rest

import (
	"bytes"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// decoder reads the lines of bus-agent-rest.
type decoder struct {
	line line // reused
}

var _ formatters.Decoder = (*decoder)(nil)

// messageID is that of the only message there is.
const messageID = "answer"

func (d *decoder) Decode(raw []byte, events []agent.Event) []agent.Event {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return events
	}
	l := &d.line
	if !l.read(raw) {
		return append(events, unknown(raw))
	}
	switch string(l.kind.Bytes()) {
	case "answer":
		if l.model.IsEmpty() {
			return append(events, agent.Event{Kind: agent.KindHeartbeat})
		}
		return append(events, agent.Event{Kind: agent.KindSessionStarted, Model: l.model.String()})
	case "start":
		return append(events, agent.Event{Kind: agent.KindSessionStarted, Model: l.model.String()})
	case "text":
		return append(events, agent.Event{Kind: agent.KindText, MessageID: messageID, Delta: true, Text: l.text.String()})
	case "thinking":
		return append(events, agent.Event{Kind: agent.KindThinking, MessageID: messageID, Delta: true, Text: l.text.String()})
	case "retry":
		return append(events, agent.Event{
			Kind: agent.KindRetry, Text: l.text.String(), Failure: l.class(),
			Attempt: int(l.attempt), MaxAttempts: int(l.maxAttempts),
		})
	case "warning":
		return append(events, agent.Event{Kind: agent.KindWarning, Text: l.text.String()})
	case "usage":
		return append(events, agent.Event{Kind: agent.KindUsage, Usage: new(l.usage)})
	case "result":
		if !l.reason.IsEmpty() {
			return append(events, agent.Event{Kind: agent.KindResult, Failed: true, Failure: l.class(), Text: l.reason.String()})
		}
		return append(events, agent.Event{Kind: agent.KindResult, Text: l.text.String()})
	}
	return append(events, unknown(raw))
}

func unknown(raw []byte) agent.Event {
	return agent.Event{Kind: agent.KindRaw, Text: string(raw)}
}

// class returns the class of a failure.
func (l *line) class() agent.Failure {
	switch {
	case l.failure.Is("authentication"):
		return agent.FailureAuthentication
	case l.failure.Is("quota"):
		return agent.FailureQuota
	}
	return ""
}

// recognize returns what knows the first line of a service.
func recognize(id string) func([]byte) bool {
	return func(raw []byte) bool {
		var l line
		return l.read(raw) && l.kind.Is("start") && l.agent.Is(executable) && l.provider.Is(id)
	}
}
