package codex

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// decoder reads the lines of `codex exec --json`.
type decoder struct{}

var _ formatters.Decoder = (*decoder)(nil)

// line is what any of the lines can hold.
type line struct {
	Type     string   `json:"type"`
	ThreadID string   `json:"thread_id"`
	Message  string   `json:"message"`
	Item     *item    `json:"item"`
	Usage    *usage   `json:"usage"`
	Error    *problem `json:"error"`
}

type problem struct {
	Message string `json:"message"`
}

type item struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`

	Text    string `json:"text"`    // agent_message, reasoning
	Message string `json:"message"` // error

	Command  string `json:"command"` // command_execution
	Output   string `json:"aggregated_output"`
	ExitCode *int   `json:"exit_code"`

	Changes []change `json:"changes"` // file_change

	Server    string          `json:"server"` // mcp_tool_call
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	Error     *problem        `json:"error"`

	Query string `json:"query"` // web_search

	Items []todo `json:"items"` // todo_list
}

type change struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
}

type todo struct {
	Text      string `json:"text"`
	Completed bool   `json:"completed"`
}

type usage struct {
	Input     int64 `json:"input_tokens"`
	Cached    int64 `json:"cached_input_tokens"`
	Output    int64 `json:"output_tokens"`
	Reasoning int64 `json:"reasoning_output_tokens"`
}

func (u *usage) total() agent.Usage {
	return agent.Usage{Input: u.Input, Cached: u.Cached, Output: u.Output, Reasoning: u.Reasoning}
}

func (d *decoder) Decode(raw []byte, events []agent.Event) []agent.Event {
	if len(bytes.TrimSpace(raw)) == 0 {
		return events
	}
	var l line
	if raw[0] != '{' || json.Unmarshal(raw, &l) != nil {
		return append(events, agent.Event{Kind: agent.KindRaw, Text: string(raw)})
	}
	switch l.Type {
	case "thread.started":
		return append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: l.ThreadID})
	case "turn.started":
		return append(events, agent.Event{Kind: agent.KindHeartbeat})
	case "item.started", "item.updated", "item.completed":
		if l.Item != nil {
			if decoded, ok := l.Item.events(strings.TrimPrefix(l.Type, "item."), events); ok {
				return decoded
			}
		}
	case "turn.completed":
		if l.Usage != nil {
			// The numbers are those of the thread, not of the turn.
			total := l.Usage.total()
			total.Cumulative = true
			events = append(events, agent.Event{Kind: agent.KindUsage, Usage: &total})
		}
		return append(events, agent.Event{Kind: agent.KindResult})
	case "turn.failed":
		e := agent.Event{Kind: agent.KindResult, Failed: true}
		if l.Error != nil {
			e.Text, e.Failure = l.Error.Message, classify(l.Error.Message)
		}
		return append(events, e)
	case "error":
		return append(events, errorEvent(l.Message))
	}
	return append(events, agent.Event{Kind: agent.KindRaw, Text: string(raw)})
}

// events appends what the item says at this stage: started, updated or
// completed. It reports false for an item it does not know.
func (i *item) events(stage string, events []agent.Event) ([]agent.Event, bool) {
	switch i.Type {
	case "agent_message", "reasoning", "file_change":
		if stage != "completed" {
			return append(events, agent.Event{Kind: agent.KindHeartbeat}), true
		}
	}
	switch i.Type {
	case "agent_message":
		events = append(events, agent.Event{Kind: agent.KindText, MessageID: i.ID, Text: i.Text})
	case "reasoning":
		events = append(events, agent.Event{Kind: agent.KindThinking, MessageID: i.ID, Text: i.Text})
	case "error":
		// Codex calls its warnings so; the run goes on.
		events = append(events, agent.Event{Kind: agent.KindWarning, Text: i.Message})
	case "command_execution":
		events = i.tool(stage, "command", inputJSON("command", i.Command), i.Output, events)
	case "mcp_tool_call":
		output := string(i.Result)
		if i.Error != nil {
			output = i.Error.Message
		}
		events = i.tool(stage, i.Server+"."+i.Tool, i.Arguments, output, events)
	case "web_search":
		events = i.tool(stage, "web_search", inputJSON("query", i.Query), "", events)
	case "file_change":
		changes := make([]agent.FileChange, len(i.Changes))
		for n, c := range i.Changes {
			changes[n] = agent.FileChange{Path: c.Path, Action: c.Kind}
		}
		events = append(events, agent.Event{Kind: agent.KindFileChange, Changes: changes, Failed: i.Status == "failed"})
	case "todo_list":
		plan := make([]agent.PlanStep, len(i.Items))
		for n, t := range i.Items {
			plan[n] = agent.PlanStep{Text: t.Text, Status: "pending"}
			if t.Completed {
				plan[n].Status = "completed"
			}
		}
		events = append(events, agent.Event{Kind: agent.KindPlan, Plan: plan})
	default:
		return events, false
	}
	return events, true
}

func (i *item) tool(stage, name string, input json.RawMessage, output string, events []agent.Event) []agent.Event {
	switch stage {
	case "started":
		return append(events, agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: i.ID, Name: name, Input: input}})
	case "completed":
		return append(events, agent.Event{
			Kind:   agent.KindToolResult,
			Tool:   &agent.Tool{ID: i.ID, Name: name, Output: output, ExitCode: i.ExitCode},
			Failed: i.Status == "failed" || i.Status == "declined" || i.ExitCode != nil && *i.ExitCode != 0,
		})
	}
	return append(events, agent.Event{Kind: agent.KindHeartbeat})
}

func inputJSON(name, value string) json.RawMessage {
	text, err := json.Marshal(map[string]string{name: value})
	if err != nil {
		return nil
	}
	return text
}

// errorEvent tells a lost connection that is tried again from other messages.
// Neither is an end: that is turn.failed alone.
func errorEvent(message string) agent.Event {
	rest, ok := strings.CutPrefix(message, "Reconnecting... ")
	if !ok {
		return agent.Event{Kind: agent.KindWarning, Text: message, Failure: classify(message)}
	}
	e := agent.Event{Kind: agent.KindRetry, Failure: classify(message)}
	if count, reason, _ := strings.Cut(rest, " "); strings.Contains(count, "/") {
		attempt, of, _ := strings.Cut(count, "/")
		e.Attempt, _ = strconv.Atoi(attempt)
		e.MaxAttempts, _ = strconv.Atoi(of)
		rest = reason
	}
	e.Text = strings.TrimSuffix(strings.TrimPrefix(rest, "("), ")")
	return e
}

// classify reads the class of a failure from Codex's message; 0.169.0 gives no
// code in its lines.
func classify(message string) agent.Failure {
	switch {
	case strings.Contains(message, "401 Unauthorized"), strings.Contains(message, "403 Forbidden"),
		strings.Contains(message, "Missing environment variable"), strings.Contains(message, "Not logged in"):
		return agent.FailureAuthentication
	case strings.Contains(message, "429 Too Many Requests"), strings.Contains(message, "usage limit"),
		strings.Contains(message, "Quota exceeded"), strings.Contains(message, "rate limit"):
		return agent.FailureQuota
	}
	return ""
}

// recognize knows the lines no other runtime writes.
func recognize(raw []byte) bool {
	var l struct {
		Type     string          `json:"type"`
		ThreadID string          `json:"thread_id"`
		Item     json.RawMessage `json:"item"`
	}
	if json.Unmarshal(raw, &l) != nil {
		return false
	}
	switch l.Type {
	case "thread.started":
		return l.ThreadID != ""
	case "turn.started", "turn.completed", "turn.failed":
		return true
	}
	return strings.HasPrefix(l.Type, "item.") && l.Item != nil
}
