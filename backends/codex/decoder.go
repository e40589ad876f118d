package codex

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/jsonline"
)

// decoder reads the lines of `codex exec --json`.
type decoder struct {
	line  line // reused
	names jsonline.Names
	input []byte // of a tool, reused

	reused agent.Tool

	// Lines of starting commands differ only in ID and command, those of successful
	// commands also in their output.
	begun, succeeded jsonline.Pattern
}

var _ formatters.Skimmer = (*decoder)(nil)

func (d *decoder) Decode(raw []byte, events []agent.Event) []agent.Event {
	if len(bytes.TrimSpace(raw)) == 0 {
		return events
	}
	if e, ok := d.commandAgain(raw); ok {
		return append(events, e)
	}
	l := &d.line
	if !l.read(raw) {
		return append(events, unknown(raw))
	}
	switch string(l.kind.Bytes()) {
	case "thread.started":
		return append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: l.threadID.String()})
	case "turn.started":
		return append(events, heartbeat)
	case "item.started":
		return d.item(started, raw, events)
	case "item.updated":
		return d.item(updated, raw, events)
	case "item.completed":
		return d.item(completed, raw, events)
	case "turn.completed":
		if l.usage != nil {
			// The numbers are those of the thread, not of the turn.
			l.usage.Cumulative = true
			events = append(events, agent.Event{Kind: agent.KindUsage, Usage: l.usage})
		}
		return append(events, agent.Event{Kind: agent.KindResult})
	case "turn.failed":
		message := l.error.String()
		return append(events, agent.Event{Kind: agent.KindResult, Failed: true, Text: message, Failure: classify(message)})
	case "error":
		return append(events, errorEvent(l.message.String()))
	}
	return append(events, unknown(raw))
}

// Skim recognizes the lines of completed commands, which are most of the output.
func (d *decoder) Skim(line []byte) (agent.Kind, bool) {
	const beginning = 96 // has the type of the item
	if !bytes.HasPrefix(line, []byte(`{"type":"item.completed","item":{"id":"`)) ||
		!bytes.Contains(line[:min(len(line), beginning)], []byte(`","type":"command_execution"`)) {
		return "", false
	}
	return agent.KindToolResult, true
}

var heartbeat = agent.Event{Kind: agent.KindHeartbeat}

func unknown(raw []byte) agent.Event {
	return agent.Event{Kind: agent.KindRaw, Text: string(raw)}
}

// stage is the progress of an item.
type stage uint8

const (
	started stage = iota
	updated
	completed
)

// item appends the events of the item at this stage.
func (d *decoder) item(at stage, raw []byte, events []agent.Event) []agent.Event {
	i := &d.line.item
	if !d.line.hasItem {
		return append(events, unknown(raw))
	}
	switch kind := string(i.kind.Bytes()); kind {
	case "agent_message", "reasoning", "file_change":
		if at != completed {
			return append(events, heartbeat)
		}
		return append(events, i.said(kind))
	case "error":
		// Codex reports warnings this way; the run continues.
		return append(events, agent.Event{Kind: agent.KindWarning, Text: i.message.String()})
	case "todo_list":
		return append(events, agent.Event{Kind: agent.KindPlan, Plan: i.plan})
	case "command_execution":
		switch {
		case at == started:
			d.begun.Learn(raw, i.id, i.command)
		case at == completed && i.exited && i.exitCode == 0 && i.status.Is("completed"):
			d.succeeded.Learn(raw, i.id, i.command, i.output)
		}
		return append(events, d.command(at))
	case "mcp_tool_call":
		output := agent.Plain(string(i.result))
		if i.failed {
			output = agent.Quoted(i.error)
		}
		return append(events, d.tool(at, i.server.String()+"."+i.tool.String(), i.arguments, output))
	case "web_search":
		return append(events, d.tool(at, "web_search", d.inputJSON("query", i.query), agent.Payload{}))
	}
	return append(events, unknown(raw))
}

// commandAgain returns the event of a line that differs from an earlier one only in
// the command.
func (d *decoder) commandAgain(raw []byte) (agent.Event, bool) {
	var found [3]jsonline.Text
	switch {
	case d.begun.Match(raw, found[:2]):
		d.line.item = item{id: found[0], command: found[1]}
		return d.command(started), true
	case d.succeeded.Match(raw, found[:]):
		d.line.item = item{id: found[0], command: found[1], output: found[2], exited: true}
		return d.command(completed), true
	}
	return agent.Event{}, false
}

func (d *decoder) command(at stage) agent.Event {
	i := &d.line.item
	return d.tool(at, "command", d.inputJSON("command", i.command), agent.Quoted(i.output))
}

// said returns the event of an item whose text is complete.
func (i *item) said(kind string) agent.Event {
	switch kind {
	case "agent_message":
		return agent.Event{Kind: agent.KindText, MessageID: i.id.String(), Text: i.text.String()}
	case "reasoning":
		return agent.Event{Kind: agent.KindThinking, MessageID: i.id.String(), Text: i.text.String()}
	}
	return agent.Event{Kind: agent.KindFileChange, Changes: i.changes, Failed: i.status.Is("failed")}
}

func (d *decoder) tool(at stage, name string, input json.RawMessage, output agent.Payload) agent.Event {
	i := &d.line.item
	switch at {
	case started:
		d.reused = agent.Tool{ID: d.names.String(i.id), Name: name, Input: input}
		return agent.Event{Kind: agent.KindToolCall, Tool: &d.reused}
	case completed:
		d.reused = agent.Tool{ID: d.names.String(i.id), Name: name, Output: output}
		if i.exited {
			d.reused.ExitCode = &i.exitCode
		}
		return agent.Event{
			Kind:   agent.KindToolResult,
			Tool:   &d.reused,
			Failed: i.status.Is("failed") || i.status.Is("declined") || i.exited && i.exitCode != 0,
		}
	}
	return heartbeat
}

// inputJSON returns an object with one member; it is valid until the next call.
func (d *decoder) inputJSON(name string, value jsonline.Text) json.RawMessage {
	if !utf8.Valid(value.Raw()) {
		text, err := json.Marshal(map[string]string{name: value.String()})
		if err != nil {
			return nil
		}
		return text
	}
	d.input = append(d.input[:0], `{"`...)
	d.input = append(d.input, name...)
	d.input = append(d.input, `":"`...)
	d.input = append(d.input, value.Raw()...)
	d.input = append(d.input, `"}`...)
	return d.input
}

// errorEvent distinguishes a lost connection, which is retried, from other messages.
// Neither ends the turn; only turn.failed does.
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
	if inner, ok := strings.CutPrefix(rest, "("); ok {
		rest = strings.TrimSuffix(inner, ")")
	}
	e.Text = rest
	return e
}

// classify returns the class of a failure by Codex's message; the lines of 0.169.0 have
// no code.
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

// recognize reports whether only Codex writes the line.
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
