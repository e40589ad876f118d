package claude

import (
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// assistant appends what a message of the model holds; usually one block.
func (d *decoder) assistant(events []agent.Event) ([]agent.Event, bool) {
	l := &d.line
	if !l.message.ok {
		return events, false
	}
	failed := l.apiError || !l.error.IsEmpty()
	if l.parent.IsEmpty() {
		d.failure = ""
		if failed {
			d.failure = classify(0, l.error.String())
		}
	}
	id := d.names.String(l.message.id)
	repeats := id != "" && d.streaming[string(l.parent.Bytes())] == id
	before := len(events)
	for i := range l.message.blocks {
		b := &l.message.blocks[i]
		text, thinking := b.kind.Is("text"), b.kind.Is("thinking")
		switch {
		case text && failed:
			// The CLI's own words in place of an answer.
			events = append(events, agent.Event{Kind: agent.KindWarning, Text: b.text.String(), Failure: classify(0, l.error.String())})
		case repeats && (text || thinking):
			// It came as deltas.
		case text:
			events = append(events, agent.Event{Kind: agent.KindText, MessageID: id, Text: b.text.String()})
		case thinking && !b.thinking.IsEmpty():
			events = append(events, agent.Event{Kind: agent.KindThinking, MessageID: id, Text: b.thinking.String()})
		case b.is("tool_use"):
			events = append(events, agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{
				ID: b.id.String(), Name: d.names.String(b.name), Input: b.input,
			}})
		case b.is("tool_result"):
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
	if !l.message.ok {
		return events, false
	}
	before := len(events)
	for i := range l.message.blocks {
		b := &l.message.blocks[i]
		switch {
		case b.kind.Is("tool_result"):
			events = append(events, b.toolResult())
			if change, ok := l.change.file(); ok && !b.isError {
				events = append(events, agent.Event{Kind: agent.KindFileChange, Changes: []agent.FileChange{change}})
			}
		case b.kind.Is("text") && strings.HasPrefix(string(b.text.Raw()), "[Request interrupted"):
			events = append(events, agent.Event{Kind: agent.KindWarning, Text: strings.Trim(b.text.String(), "[]")})
		}
	}
	if len(events) == before {
		events = append(events, heartbeat)
	}
	return events, true
}

func (b *block) toolResult() agent.Event {
	tool := &agent.Tool{ID: b.toolUseID.String(), Output: b.content}
	if b.isError {
		tool.ExitCode, tool.Output = exitCode(tool.Output)
	}
	return agent.Event{Kind: agent.KindToolResult, Tool: tool, Failed: b.isError}
}

// exitCode takes the exit code of a failed command from the line before its
// output.
func exitCode(output agent.Payload) (*int, agent.Payload) {
	rest, ok := strings.CutPrefix(output.String(), "Exit code ")
	if !ok {
		return nil, output
	}
	number, rest, _ := strings.Cut(rest, "\n")
	code, err := strconv.Atoi(number)
	if err != nil {
		return nil, output
	}
	return &code, agent.Plain(rest)
}

func (d *decoder) stream(events []agent.Event) ([]agent.Event, bool) {
	l := &d.line
	if !l.hasEvent {
		return events, false
	}
	e := &l.event
	switch {
	case e.kind.Is("message_start"):
		if d.streaming == nil {
			d.streaming = map[string]string{}
		}
		d.streaming[l.parent.String()] = d.names.String(e.id)
	case e.delta.Is("text_delta"):
		return append(events, agent.Event{
			Kind: agent.KindText, MessageID: d.streaming[string(l.parent.Bytes())], Delta: true, Text: e.text.String(),
		}), true
	case e.delta.Is("thinking_delta"):
		return append(events, agent.Event{
			Kind: agent.KindThinking, MessageID: d.streaming[string(l.parent.Bytes())], Delta: true, Text: e.thinking.String(),
		}), true
	}
	return append(events, heartbeat), true
}
