package claude

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/jsonline"
)

// decoder reads the lines of `claude -p --output-format stream-json`.
type decoder struct {
	// failure is the class of the last error message of the main agent. Results do
	// not always have it.
	failure agent.Failure
	// streaming holds, by subagent, the message that came as deltas. Its whole text
	// follows and is ignored.
	streaming map[string]string
	// spent sums up the usage of the results of this process.
	spent agent.Usage

	// The lines of the pieces of a message of the main agent differ only in the
	// piece and in the ID of the line.
	texts, thoughts, inputs jsonline.Pattern

	line  line // reused
	names jsonline.Names
}

var _ formatters.Skimmer = (*decoder)(nil)

func (d *decoder) Decode(raw []byte, events []agent.Event) []agent.Event {
	if len(bytes.TrimSpace(raw)) == 0 {
		return events
	}
	if e, ok := d.piece(raw); ok {
		return append(events, e)
	}
	if !d.line.read(raw) {
		return append(events, unknown(raw))
	}
	before := len(events)
	known := true
	switch string(d.line.kind.Bytes()) {
	case "system":
		events, known = d.line.system(raw, events)
	case "assistant":
		events, known = d.assistant(events)
	case "user":
		events, known = d.line.user(events)
	case "stream_event":
		events, known = d.stream(raw, events)
	case "result":
		events, known = d.result(raw, events)
	case "rate_limit_event":
		events = append(events, rateLimit(raw))
	case "tool_progress", "keep_alive", "command_lifecycle":
		events = append(events, heartbeat)
	default:
		known = false
	}
	if !known {
		return append(events[:before], unknown(raw))
	}
	if !d.line.parent.IsEmpty() {
		parent := d.names.String(d.line.parent)
		for i := range events[before:] {
			events[before+i].Subagent = parent
		}
	}
	return events
}

// Skim recognizes tool results, which are most of the output, and pieces of a message
// other than its text.
func (d *decoder) Skim(line []byte) (agent.Kind, bool) {
	line = line[:min(len(line), formatters.SkimSize)]
	if bytes.HasPrefix(line, []byte(`{"type":"user"`)) {
		return agent.KindToolResult, bytes.Contains(line, []byte(`"type":"tool_result"`))
	}
	event, ok := bytes.CutPrefix(line, []byte(`{"type":"stream_event","event":{"type":"`))
	if !ok {
		return "", false
	}
	if delta, ok := bytes.CutPrefix(event, []byte(`content_block_delta","index":`)); ok {
		_, delta, _ = bytes.Cut(delta, []byte(`,"delta":{"type":"`))
		if bytes.HasPrefix(delta, []byte(`thinking_delta"`)) {
			return agent.KindThinking, true
		}
		return agent.KindHeartbeat, bytes.HasPrefix(delta, []byte(`input_json_delta"`)) || bytes.HasPrefix(delta, []byte(`signature_delta"`))
	}
	return agent.KindHeartbeat, bytes.HasPrefix(event, []byte(`content_block_st`)) || // start or stop
		bytes.HasPrefix(event, []byte(`message_delta"`)) || bytes.HasPrefix(event, []byte(`message_stop"`))
}

var heartbeat = agent.Event{Kind: agent.KindHeartbeat}

func unknown(raw []byte) agent.Event {
	return agent.Event{Kind: agent.KindRaw, Text: string(raw)}
}

// system appends the events of a line of the CLI itself. It reports false for an
// unknown line.
func (l *line) system(raw []byte, events []agent.Event) ([]agent.Event, bool) {
	switch string(l.subtype.Bytes()) {
	case "task_started", "task_updated", "task_notification", "task_progress",
		"thinking_tokens", "status", "compact_boundary", "session_state_changed",
		"hook_started", "hook_progress", "hook_response", "turn_duration":
		return append(events, heartbeat), true
	}
	var n notice
	if json.Unmarshal(raw, &n) != nil {
		return events, false
	}
	return n.events(events)
}

// notice is a line of the CLI itself.
type notice struct {
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`

	Model       string            `json:"model"` // init
	Attempt     int               `json:"attempt"`
	MaxRetries  int               `json:"max_retries"`
	ErrorStatus int               `json:"error_status"`
	Error       string            `json:"error"`
	ToolName    string            `json:"tool_name"`
	ToolUseID   string            `json:"tool_use_id"`
	Message     json.RawMessage   `json:"message"`
	Tasks       []json.RawMessage `json:"tasks"`
	Content     json.RawMessage   `json:"content"`
	Text        string            `json:"text"`
}

func (n *notice) events(events []agent.Event) ([]agent.Event, bool) {
	switch n.Subtype {
	case "init":
		return append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: n.SessionID, Model: n.Model}), true
	case "api_retry":
		e := agent.Event{
			Kind: agent.KindRetry, Attempt: n.Attempt, MaxAttempts: n.MaxRetries,
			Text: n.Error, Failure: classify(n.ErrorStatus, n.Error),
		}
		if n.ErrorStatus != 0 {
			e.Text = strings.TrimSpace(e.Text + " (HTTP " + strconv.Itoa(n.ErrorStatus) + ")")
		}
		return append(events, e), true
	case "permission_denied":
		return append(events, agent.Event{
			Kind: agent.KindApproval, Failed: true, Text: text(n.Message),
			Tool: &agent.Tool{ID: n.ToolUseID, Name: n.ToolName},
		}), true
	case "background_tasks_changed":
		open := len(n.Tasks)
		return append(events, agent.Event{Kind: agent.KindHeartbeat, Background: &open}), true
	case "informational", "notification":
		if note := text(n.Content) + n.Text; note != "" {
			return append(events, agent.Event{Kind: agent.KindWarning, Text: note}), true
		}
		return append(events, heartbeat), true
	}
	return events, false
}

// text returns a JSON string, or the texts of a list of content blocks.
func text(raw []byte) string {
	r := jsonline.New(raw)
	t := texts(&r)
	if !r.End() {
		return ""
	}
	return t.String()
}

func rateLimit(raw []byte) agent.Event {
	var l struct {
		RateLimit struct {
			Status string `json:"status"`
		} `json:"rate_limit_info"`
	}
	if json.Unmarshal(raw, &l) != nil {
		return unknown(raw)
	}
	switch l.RateLimit.Status {
	case "rejected":
		return agent.Event{Kind: agent.KindWarning, Text: "the usage limit is reached", Failure: agent.FailureQuota}
	case "allowed_warning":
		return agent.Event{Kind: agent.KindWarning, Text: "the usage limit is near"}
	}
	return heartbeat
}

// classify returns the class of a failure by the HTTP status, or without one by the
// CLI's name of the error.
func classify(status int, word string) agent.Failure {
	switch {
	case status == 401, status == 403, word == "authentication_failed", word == "oauth_org_not_allowed":
		return agent.FailureAuthentication
	case status == 429, word == "rate_limit", word == "billing_error":
		return agent.FailureQuota
	}
	return ""
}

// recognize reports whether only Claude Code writes the line: each has an ID besides
// that of the session. Qwen Code writes such lines too, and begins with one that has the
// ID of the session twice.
func recognize(raw []byte) bool {
	var l struct {
		Type      string `json:"type"`
		SessionID string `json:"session_id"`
		UUID      string `json:"uuid"`
	}
	if json.Unmarshal(raw, &l) != nil || l.SessionID == "" || l.UUID == "" || l.UUID == l.SessionID {
		return false
	}
	switch l.Type {
	case "system", "assistant", "user", "stream_event", "result", "rate_limit_event":
		return true
	}
	return false
}
