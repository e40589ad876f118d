package claude

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// message is what the model or the CLI in the user's place says.
type message struct {
	ID      string          `json:"id"`
	Content json.RawMessage `json:"content"` // a text or a list of blocks
}

type block struct {
	Type string `json:"type"`

	Text     string `json:"text"`     // text
	Thinking string `json:"thinking"` // thinking

	ID    string          `json:"id"` // tool_use
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`

	ToolUseID string          `json:"tool_use_id"` // tool_result
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

func (l *line) blocks() (m message, blocks []block, ok bool) {
	if json.Unmarshal(l.Message, &m) != nil {
		return m, nil, false
	}
	if json.Unmarshal(m.Content, &blocks) == nil {
		return m, blocks, true
	}
	var s string
	if json.Unmarshal(m.Content, &s) != nil {
		return m, nil, false
	}
	return m, []block{{Type: "text", Text: s}}, true
}

// assistant appends what a message of the model holds; usually one block.
func (d *decoder) assistant(l *line, events []agent.Event) ([]agent.Event, bool) {
	m, blocks, ok := l.blocks()
	if !ok {
		return events, false
	}
	failed := l.APIError || l.Error != ""
	if l.Parent == "" {
		d.failure = ""
		if failed {
			d.failure = classify(0, l.Error)
		}
	}
	repeats := m.ID != "" && d.streaming[l.Parent] == m.ID
	before := len(events)
	for _, b := range blocks {
		switch {
		case b.Type == "text" && failed:
			// The CLI's own words in place of an answer.
			events = append(events, agent.Event{Kind: agent.KindWarning, Text: b.Text, Failure: classify(0, l.Error)})
		case repeats && (b.Type == "text" || b.Type == "thinking"):
			// It came as deltas.
		case b.Type == "text":
			events = append(events, agent.Event{Kind: agent.KindText, MessageID: m.ID, Text: b.Text})
		case b.Type == "thinking" && b.Thinking != "":
			events = append(events, agent.Event{Kind: agent.KindThinking, MessageID: m.ID, Text: b.Thinking})
		case strings.HasSuffix(b.Type, "tool_use"):
			events = append(events, agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: b.ID, Name: b.Name, Input: b.Input}})
		case strings.HasSuffix(b.Type, "tool_result"):
			events = append(events, b.toolResult())
		}
	}
	if len(events) == before {
		events = append(events, heartbeat)
	}
	return events, true
}

// user appends the results of tools. Other texts in the user's place are the
// CLI's: prompts of subagents, reminders, notes about background tasks.
func (l *line) user(events []agent.Event) ([]agent.Event, bool) {
	_, blocks, ok := l.blocks()
	if !ok {
		return events, false
	}
	before := len(events)
	for _, b := range blocks {
		switch {
		case b.Type == "tool_result":
			events = append(events, b.toolResult())
			if change, ok := l.change(); ok && !b.IsError {
				events = append(events, agent.Event{Kind: agent.KindFileChange, Changes: []agent.FileChange{change}})
			}
		case b.Type == "text" && strings.HasPrefix(b.Text, "[Request interrupted"):
			events = append(events, agent.Event{Kind: agent.KindWarning, Text: strings.Trim(b.Text, "[]")})
		}
	}
	if len(events) == before {
		events = append(events, heartbeat)
	}
	return events, true
}

func (b *block) toolResult() agent.Event {
	tool := &agent.Tool{ID: b.ToolUseID, Output: text(b.Content)}
	if b.IsError {
		tool.ExitCode, tool.Output = exitCode(tool.Output)
	}
	return agent.Event{Kind: agent.KindToolResult, Tool: tool, Failed: b.IsError}
}

// exitCode takes the exit code of a failed command from the line before its
// output.
func exitCode(output string) (*int, string) {
	rest, ok := strings.CutPrefix(output, "Exit code ")
	if !ok {
		return nil, output
	}
	number, rest, _ := strings.Cut(rest, "\n")
	code, err := strconv.Atoi(number)
	if err != nil {
		return nil, output
	}
	return &code, rest
}

// change returns the file a tool has written, where its result tells.
func (l *line) change() (agent.FileChange, bool) {
	var written struct {
		Type  string          `json:"type"`
		Path  string          `json:"filePath"`
		Patch json.RawMessage `json:"structuredPatch"`
	}
	if json.Unmarshal(l.ToolUse, &written) != nil || written.Path == "" || written.Patch == nil {
		return agent.FileChange{}, false
	}
	action := "update"
	if written.Type == "create" {
		action = "add"
	}
	return agent.FileChange{Path: written.Path, Action: action}, true
}

// streamEvent is a piece of a message as the model sends it; these lines come
// only when the caller asks for them with --include-partial-messages.
type streamEvent struct {
	Type    string  `json:"type"`
	Message message `json:"message"`
	Delta   struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
	} `json:"delta"`
}

func (d *decoder) stream(l *line, events []agent.Event) ([]agent.Event, bool) {
	if l.Event == nil {
		return events, false
	}
	switch {
	case l.Event.Type == "message_start":
		if d.streaming == nil {
			d.streaming = map[string]string{}
		}
		d.streaming[strings.Clone(l.Parent)] = l.Event.Message.ID
	case l.Event.Delta.Type == "text_delta":
		return append(events, agent.Event{
			Kind: agent.KindText, MessageID: d.streaming[l.Parent], Delta: true, Text: l.Event.Delta.Text,
		}), true
	case l.Event.Delta.Type == "thinking_delta":
		return append(events, agent.Event{
			Kind: agent.KindThinking, MessageID: d.streaming[l.Parent], Delta: true, Text: l.Event.Delta.Thinking,
		}), true
	}
	return append(events, heartbeat), true
}
