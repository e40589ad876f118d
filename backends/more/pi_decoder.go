package more

import (
	"encoding/json"
	"strconv"

	"github.com/busdk/bus-agent/agent"
)

// piDecoder reads the lines of `pi --mode json`.
type piDecoder struct {
	session  string
	model    string
	messages int // counts those of the model, which have no IDs
	spent    agent.Usage
	// stop is why the last message of the model ended, and problem its error.
	stop, problem string
	// retrying means that the turn continues after a result. Until the next one this is
	// reported as a background task, because a run ends soon after a result.
	retrying bool
}

type piLine struct {
	Type    string `json:"type"`
	ID      string `json:"id"` // session
	Message struct {
		Role     string          `json:"role"`
		Provider string          `json:"provider"`
		Model    string          `json:"model"`
		Content  json.RawMessage `json:"content"` // of an assistant, a list of piPart
		Usage    struct {
			Input      int64 `json:"input"` // without those of the cache
			Output     int64 `json:"output"`
			CacheRead  int64 `json:"cacheRead"`
			CacheWrite int64 `json:"cacheWrite"`
		} `json:"usage"`
		Stop    string `json:"stopReason"`
		Problem string `json:"errorMessage"`
	} `json:"message"` // message_end
	ToolCallID string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
	Args       json.RawMessage `json:"args"`
	Result     struct {
		Content content `json:"content"`
	} `json:"result"`
	IsError bool `json:"isError"`

	Attempt     int    `json:"attempt"` // auto_retry_start
	MaxAttempts int    `json:"maxAttempts"`
	Problem     string `json:"errorMessage"`
}

type piPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Thinking string `json:"thinking"`
}

func (d *piDecoder) line(raw []byte, events []agent.Event) ([]agent.Event, bool) {
	var kind struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &kind) != nil {
		return events, false
	}
	switch kind.Type {
	case "agent_start", "turn_start", "turn_end", "message_start", "message_update", "tool_execution_update",
		"auto_retry_end", "agent_settled", "queue_update", "compaction_start", "compaction_end", "extension_ui_request":
		return events, true
	case "agent_end": // it repeats all messages
		return d.end(events), true
	}
	var l piLine
	if json.Unmarshal(raw, &l) != nil {
		return events, false
	}
	switch l.Type {
	case "session":
		d.session = l.ID
		events = append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: l.ID})
	case "message_end":
		if l.Message.Role == "assistant" {
			events = d.said(&l, events)
		}
	case "tool_execution_start":
		events = append(events, toolCall(l.ToolCallID, l.ToolName, l.Args))
	case "tool_execution_end":
		events = append(events, toolResult(l.ToolCallID, l.Result.Content.text(), l.IsError))
	case "auto_retry_start":
		d.retrying = true
		events = append(events,
			agent.Event{Kind: agent.KindRetry, Text: l.Problem, Attempt: l.Attempt, MaxAttempts: l.MaxAttempts},
			agent.Event{Kind: agent.KindHeartbeat, Background: new(1)})
	case "extension_error":
		events = append(events, agent.Event{Kind: agent.KindWarning, Text: l.Problem})
	default:
		return events, false
	}
	return events, true
}

// said appends the events of a message of the model, without its tool calls, which other
// lines report.
func (d *piDecoder) said(l *piLine, events []agent.Event) []agent.Event {
	m := &l.Message
	if model := m.Provider + "/" + m.Model; model != d.model {
		d.model = model
		events = append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: d.session, Model: model})
	}
	d.messages++
	id := strconv.Itoa(d.messages)
	var parts []piPart
	_ = json.Unmarshal(m.Content, &parts) // then it has none
	for _, p := range parts {
		switch p.Type {
		case "text":
			events = append(events, text(id, p.Text))
		case "thinking":
			events = append(events, thinking(id, p.Thinking))
		}
	}
	u := m.Usage
	add(&d.spent, agent.Usage{Input: u.Input + u.CacheRead + u.CacheWrite, Cached: u.CacheRead, Output: u.Output})
	d.stop, d.problem = m.Stop, m.Problem
	return events
}

// end appends the events of the end of a turn, after which the CLI can still retry.
func (d *piDecoder) end(events []agent.Event) []agent.Event {
	if d.retrying {
		d.retrying = false
		events = append(events, agent.Event{Kind: agent.KindHeartbeat, Background: new(0)})
	}
	events = append(events, used(d.spent)...)
	switch d.stop {
	case "error":
		return append(events, failed(d.problem))
	case "aborted":
		e := failed("the turn was interrupted")
		e.Interrupted = true
		return append(events, e)
	}
	return append(events, agent.Event{Kind: agent.KindResult})
}
