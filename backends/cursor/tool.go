package cursor

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// call is the value of the member of a tool_call that names the tool.
type call struct {
	Args   json.RawMessage            `json:"args"`
	Result map[string]json.RawMessage `json:"result"`

	Name      string          `json:"name"` // function
	Arguments json.RawMessage `json:"arguments"`
}

// outcome has the common members of the results of documented tools.
type outcome struct {
	ExitCode *int   `json:"exitCode"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
	Path     string `json:"path"`
	Content  string `json:"content"` // read

	Message string `json:"message"` // failures
	Reason  string `json:"reason"`
	Error   string `json:"error"`
}

// tool appends the events of a tool call. It reports false for an unknown form.
func (l *line) tool(events []agent.Event) ([]agent.Event, bool) {
	name, c, ok := parseCall(l.ToolCall)
	if !ok {
		return events, false
	}
	switch l.Subtype {
	case "started":
		return append(events, agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: l.CallID, Name: name, Input: c.Args}}), true
	case "completed":
		return l.completed(name, c, events), true
	}
	return events, false
}

// parseCall finds the member that names the tool: one like "readToolCall", or
// "function" for other tools.
func parseCall(raw json.RawMessage) (name string, c call, ok bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return "", call{}, false
	}
	// Sorted, so that equal lines give equal events.
	for _, key := range slices.Sorted(maps.Keys(members)) {
		kind, isCall := strings.CutSuffix(key, "ToolCall")
		if !isCall && key != "function" {
			continue
		}
		if json.Unmarshal(members[key], &c) != nil {
			return "", call{}, false
		}
		if isCall {
			return kind, c, true
		}
		c.Args = c.Arguments
		var text string
		if json.Unmarshal(c.Args, &text) == nil && json.Valid([]byte(text)) {
			c.Args = json.RawMessage(text) // it is JSON in a string
		}
		return c.Name, c, true
	}
	return "", call{}, false
}

func (l *line) completed(name string, c call, events []agent.Event) []agent.Event {
	tool := &agent.Tool{ID: l.CallID, Name: name}
	success, succeeded := c.Result["success"]
	if rejected, ok := c.Result["rejected"]; ok {
		o := parseOutcome(rejected)
		events = append(events, agent.Event{Kind: agent.KindApproval, Failed: true, Text: o.Reason, Tool: tool})
		return append(events, agent.Event{Kind: agent.KindToolResult, Failed: true, Tool: &agent.Tool{ID: l.CallID, Name: name, Output: agent.Plain(o.text())}})
	}
	result := success
	if !succeeded {
		for _, key := range slices.Sorted(maps.Keys(c.Result)) {
			if len(c.Result[key]) > 0 && c.Result[key][0] == '{' {
				result = c.Result[key]
				break
			}
		}
	}
	o := parseOutcome(result)
	tool.Output, tool.ExitCode = agent.Plain(o.text()), o.ExitCode
	failed := len(c.Result) > 0 && !succeeded || o.ExitCode != nil && *o.ExitCode != 0
	events = append(events, agent.Event{Kind: agent.KindToolResult, Failed: failed, Tool: tool})
	if change, ok := changed(name, c, o); ok && succeeded {
		events = append(events, agent.Event{Kind: agent.KindFileChange, Changes: []agent.FileChange{change}})
	}
	return events
}

func parseOutcome(raw json.RawMessage) (o outcome) {
	// Members of an unexpected type are left out.
	_ = json.Unmarshal(raw, &o)
	return o
}

func (o outcome) text() string {
	if out := o.Stdout + o.Stderr; out != "" {
		return out
	}
	for _, text := range []string{o.Content, o.Message, o.Reason, o.Error} {
		if text != "" {
			return text
		}
	}
	return ""
}

// changed returns the file that a tool has written. The CLI does not report whether it
// existed before.
func changed(name string, c call, o outcome) (agent.FileChange, bool) {
	change := agent.FileChange{Path: o.Path, Action: "update"}
	switch name {
	case "write", "edit":
	case "delete":
		change.Action = "delete"
	default:
		return agent.FileChange{}, false
	}
	if change.Path == "" {
		var args outcome
		_ = json.Unmarshal(c.Args, &args)
		change.Path = args.Path
	}
	return change, change.Path != ""
}
