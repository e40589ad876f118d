package claude

import (
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/jsonline"
)

// assistant appends the events of a message of the model, which usually has one block.
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
			// A text of the CLI instead of an answer.
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

// user appends the results of tools. Other texts in the role of the user come from the
// CLI: prompts of subagents, reminders, notes about background tasks.
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

// exitCode removes the line with the exit code of a failed command from the start of
// its output.
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

func (d *decoder) stream(raw []byte, events []agent.Event) ([]agent.Event, bool) {
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
		if l.parent.IsEmpty() {
			d.texts.Learn(raw, e.text, l.uuid)
		}
		return append(events, d.delta(agent.KindText, e.text)), true
	case e.delta.Is("thinking_delta"):
		if l.parent.IsEmpty() {
			d.thoughts.Learn(raw, e.thinking, l.uuid)
		}
		return append(events, d.delta(agent.KindThinking, e.thinking)), true
	case e.delta.Is("input_json_delta") && l.parent.IsEmpty():
		d.inputs.Learn(raw, e.input, l.uuid)
	}
	return append(events, heartbeat), true
}

// piece returns the event of a line that differs from an earlier one only in its
// piece.
func (d *decoder) piece(raw []byte) (agent.Event, bool) {
	var found [2]jsonline.Text
	d.line.parent = jsonline.Text{}
	switch {
	case d.texts.Match(raw, found[:]):
		return d.delta(agent.KindText, found[0]), true
	case d.thoughts.Match(raw, found[:]):
		return d.delta(agent.KindThinking, found[0]), true
	case d.inputs.Match(raw, found[:]):
		return heartbeat, true
	}
	return agent.Event{}, false
}

// delta returns the event of a piece of the message that was read.
func (d *decoder) delta(kind agent.Kind, text jsonline.Text) agent.Event {
	return agent.Event{Kind: kind, MessageID: d.streaming[string(d.line.parent.Bytes())], Delta: true, Text: text.String()}
}
