package claude

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// decoder reads the lines of `claude -p --output-format stream-json`. The order
// of the members of a line is not stable.
type decoder struct {
	// failure is what the last message of the main agent that was an error
	// message said; results do not always tell the class.
	failure agent.Failure
	// streaming holds, by subagent, the message that came as deltas: its whole
	// text follows and is no news.
	streaming map[string]string
	// spent sums up the usage of the results of this process.
	spent agent.Usage
}

var _ formatters.Decoder = (*decoder)(nil)

// line is what any of the lines can hold.
type line struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Parent    string `json:"parent_tool_use_id"`

	Model   string          `json:"model"`   // system init
	Message json.RawMessage `json:"message"` // an object, or a text in system lines
	Event   *streamEvent    `json:"event"`   // stream_event

	// system
	Attempt     int               `json:"attempt"`
	MaxRetries  int               `json:"max_retries"`
	ErrorStatus int               `json:"error_status"`
	Error       string            `json:"error"` // assistant too
	ToolName    string            `json:"tool_name"`
	ToolUseID   string            `json:"tool_use_id"`
	Tasks       []json.RawMessage `json:"tasks"`
	Content     json.RawMessage   `json:"content"`
	Text        string            `json:"text"`

	APIError  bool            `json:"is_api_error_message"` // assistant
	Result    json.RawMessage `json:"result"`               // result
	ToolUse   json.RawMessage `json:"tool_use_result"`      // user
	RateLimit struct {
		Status string `json:"status"`
	} `json:"rate_limit_info"` // rate_limit_event
}

func (d *decoder) Decode(raw []byte, events []agent.Event) []agent.Event {
	if len(bytes.TrimSpace(raw)) == 0 {
		return events
	}
	var l line
	if json.Unmarshal(raw, &l) != nil {
		return append(events, unknown(raw))
	}
	before := len(events)
	known := true
	switch l.Type {
	case "system":
		events, known = l.system(events)
	case "assistant":
		events, known = d.assistant(&l, events)
	case "user":
		events, known = l.user(events)
	case "stream_event":
		events, known = d.stream(&l, events)
	case "result":
		events, known = d.result(raw, events)
	case "rate_limit_event":
		events = append(events, l.rateLimit())
	case "tool_progress", "keep_alive":
		events = append(events, heartbeat)
	default:
		known = false
	}
	if !known {
		return append(events[:before], unknown(raw))
	}
	for i := range events[before:] {
		events[before+i].Subagent = l.Parent
	}
	return events
}

var heartbeat = agent.Event{Kind: agent.KindHeartbeat}

func unknown(raw []byte) agent.Event {
	return agent.Event{Kind: agent.KindRaw, Text: string(raw)}
}

// system appends what a line of the CLI itself says. It reports false for one
// it does not know.
func (l *line) system(events []agent.Event) ([]agent.Event, bool) {
	switch l.Subtype {
	case "init":
		return append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: l.SessionID, Model: l.Model}), true
	case "api_retry":
		e := agent.Event{
			Kind: agent.KindRetry, Attempt: l.Attempt, MaxAttempts: l.MaxRetries,
			Text: l.Error, Failure: classify(l.ErrorStatus, l.Error),
		}
		if l.ErrorStatus != 0 {
			e.Text = strings.TrimSpace(e.Text + " (HTTP " + strconv.Itoa(l.ErrorStatus) + ")")
		}
		return append(events, e), true
	case "permission_denied":
		return append(events, agent.Event{
			Kind: agent.KindApproval, Failed: true, Text: text(l.Message),
			Tool: &agent.Tool{ID: l.ToolUseID, Name: l.ToolName},
		}), true
	case "background_tasks_changed":
		open := len(l.Tasks)
		return append(events, agent.Event{Kind: agent.KindHeartbeat, Background: &open}), true
	case "informational", "notification":
		if note := text(l.Content) + l.Text; note != "" {
			return append(events, agent.Event{Kind: agent.KindWarning, Text: note}), true
		}
		return append(events, heartbeat), true
	case "task_started", "task_updated", "task_notification", "task_progress",
		"thinking_tokens", "status", "compact_boundary", "session_state_changed",
		"hook_started", "hook_progress", "hook_response", "turn_duration":
		return append(events, heartbeat), true
	}
	return events, false
}

func (l *line) rateLimit() agent.Event {
	switch l.RateLimit.Status {
	case "rejected":
		return agent.Event{Kind: agent.KindWarning, Text: "the usage limit is reached", Failure: agent.FailureQuota}
	case "allowed_warning":
		return agent.Event{Kind: agent.KindWarning, Text: "the usage limit is near"}
	}
	return heartbeat
}

// classify reads the class of a failure from an HTTP status, or where there is
// none from the CLI's word for it.
func classify(status int, word string) agent.Failure {
	switch {
	case status == 401, status == 403, word == "authentication_failed", word == "oauth_org_not_allowed":
		return agent.FailureAuthentication
	case status == 429, word == "rate_limit", word == "billing_error":
		return agent.FailureQuota
	}
	return ""
}

// text returns a JSON string, or the texts of a list of content blocks one
// after the other.
func text(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var blocks []block
	if json.Unmarshal(raw, &blocks) != nil {
		return ""
	}
	var b strings.Builder
	for _, block := range blocks {
		if block.Text != "" && b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(block.Text)
	}
	return b.String()
}

// recognize knows the lines no other runtime writes: all of them have an ID of
// their own beside that of the session.
func recognize(raw []byte) bool {
	var l struct {
		Type      string `json:"type"`
		SessionID string `json:"session_id"`
		UUID      string `json:"uuid"`
	}
	if json.Unmarshal(raw, &l) != nil || l.SessionID == "" || l.UUID == "" {
		return false
	}
	switch l.Type {
	case "system", "assistant", "user", "stream_event", "result", "rate_limit_event":
		return true
	}
	return false
}
