package more

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// copilotDecoder reads the lines of `copilot --output-format json`. They have no token
// usage.
type copilotDecoder struct {
	model   string
	problem string // the error of the session since the last message
	failure agent.Failure
}

type copilotLine struct {
	Type      string `json:"type"`
	SessionID string `json:"sessionId"` // result
	ExitCode  *int   `json:"exitCode"`
	Data      struct {
		SessionID string `json:"sessionId"` // session.start

		MessageID string `json:"messageId"` // assistant.message
		Model     string `json:"model"`
		Content   string `json:"content"`
		Reasoning string `json:"reasoningText"`

		ToolCallID string          `json:"toolCallId"` // tool.execution_*
		ToolName   string          `json:"toolName"`
		Arguments  json.RawMessage `json:"arguments"`
		Success    bool            `json:"success"`
		Result     struct {
			Content string `json:"content"`
		} `json:"result"`
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
		Shell struct {
			ExitCode *int `json:"exitCode"`
		} `json:"shellExecution"`

		ErrorType  string `json:"errorType"` // session.error
		StatusCode int    `json:"statusCode"`
		Message    string `json:"message"` // session.warning too
		Reason     string `json:"reason"`  // assistant.turn_retry
	} `json:"data"`
}

func (d *copilotDecoder) line(raw []byte, events []agent.Event) ([]agent.Event, bool) {
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &kind) != nil {
		return events, false
	}
	switch kind.Type {
	case "session.start", "assistant.message", "assistant.turn_retry", "tool.execution_start", "tool.execution_complete", "session.error", "session.warning", "result":
	default: // lists of skills, deltas, states and the like
		family, _, _ := strings.Cut(kind.Type, ".")
		switch family {
		case "assistant", "hook", "model", "permission", "session", "skill", "subagent", "system", "tool", "user":
			return events, true
		}
		return events, false
	}
	var l copilotLine
	if json.Unmarshal(raw, &l) != nil {
		return events, false
	}
	data := &l.Data
	switch l.Type {
	case "session.start": // in its log of a session; its output begins later
		events = append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: data.SessionID})
	case "assistant.message":
		d.problem, d.failure = "", ""
		if data.Model != "" && data.Model != d.model {
			d.model = data.Model
			events = append(events, agent.Event{Kind: agent.KindSessionStarted, Model: d.model})
		}
		if data.Reasoning != "" {
			events = append(events, thinking(data.MessageID, data.Reasoning))
		}
		if data.Content != "" {
			events = append(events, text(data.MessageID, data.Content))
		}
	case "assistant.turn_retry":
		events = append(events, agent.Event{Kind: agent.KindRetry, Text: data.Reason})
	case "tool.execution_start":
		events = append(events, toolCall(data.ToolCallID, data.ToolName, data.Arguments))
	case "tool.execution_complete":
		e := toolResult(data.ToolCallID, cmp.Or(data.Result.Content, data.Error.Message), !data.Success)
		e.Tool.ExitCode = data.Shell.ExitCode
		events = append(events, e)
	case "session.warning":
		events = append(events, agent.Event{Kind: agent.KindWarning, Text: data.Message})
	case "session.error":
		d.problem, d.failure = data.Message, copilotFailure(data.ErrorType, data.StatusCode)
		events = append(events, agent.Event{Kind: agent.KindWarning, Text: d.problem, Failure: d.failure})
	case "result":
		events = d.result(&l, events)
	}
	return events, true
}

// result appends the events of the last line, which has the ID of the session.
func (d *copilotDecoder) result(l *copilotLine, events []agent.Event) []agent.Event {
	events = append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: l.SessionID, Model: d.model})
	if l.ExitCode == nil || *l.ExitCode != 0 || d.problem != "" {
		e := failed(d.problem)
		e.Failure = d.failure
		return append(events, e)
	}
	return append(events, agent.Event{Kind: agent.KindResult})
}

func copilotFailure(kind string, status int) agent.Failure {
	switch kind {
	case "authentication":
		return agent.FailureAuthentication
	case "quota", "rate_limit":
		return agent.FailureQuota
	}
	return failureOf(status)
}
