package gemini

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/jsonline"
)

// decoder reads the lines of `gemini -o stream-json`.
type decoder struct {
	// messages counts the messages: the lines have no IDs, and a tool call ends a
	// message.
	messages int
	message  string // the number of the last one
	open     bool   // the message can be continued
	session  string
	model    string
	problem  string // the last error before the result

	// Lines of pieces of a message differ only in the piece and the time, those of
	// successful tools only in time, ID and output.
	piece, succeeded jsonline.Pattern

	line  line // reused
	names jsonline.Names
	tool  agent.Tool // reused
}

var _ formatters.Skimmer = (*decoder)(nil)

func (d *decoder) Decode(raw []byte, events []agent.Event) []agent.Event {
	if len(bytes.TrimSpace(raw)) == 0 {
		return events
	}
	var found [3]jsonline.Text
	if d.piece.Match(raw, found[:2]) {
		return append(events, d.delta(found[1]))
	}
	if d.succeeded.Match(raw, found[:]) {
		return append(events, d.toolResult(found[1], found[2], true))
	}
	l := &d.line
	if l.read(raw) {
		switch string(l.kind.Bytes()) {
		case "init":
			return append(events, d.init(l))
		case "message":
			return append(events, d.said(raw, l))
		case "tool_use":
			d.open = false
			d.tool = agent.Tool{ID: l.toolID.String(), Name: d.names.String(l.toolName), Input: l.parameters}
			return append(events, agent.Event{Kind: agent.KindToolCall, Tool: &d.tool})
		case "tool_result":
			output := l.output
			if output.IsEmpty() {
				output = l.error.message
			}
			if l.succeeded() {
				d.succeeded.Learn(raw, l.timestamp, l.toolID, l.output)
			}
			return append(events, d.toolResult(l.toolID, output, l.succeeded()))
		case "error":
			d.problem = l.message.String()
			return append(events, agent.Event{Kind: agent.KindWarning, Text: d.problem, Failure: classify("", d.problem)})
		case "result":
			return d.result(l, events)
		}
	}
	return append(events, agent.Event{Kind: agent.KindRaw, Text: string(raw)})
}

// Skim recognizes tool results and the prompt, which the CLI repeats.
func (d *decoder) Skim(line []byte) (agent.Kind, bool) {
	if !bytes.HasPrefix(line, []byte(`{"type":"tool_result","timestamp":"`)) {
		return "", false
	}
	d.open = false
	return agent.KindToolResult, true
}

// auto is the CLI's name of the model if it chooses one itself.
const auto = "auto"

func (d *decoder) init(l *line) agent.Event {
	d.session, d.model, d.open, d.problem = l.sessionID.String(), l.model.String(), false, ""
	if d.model == auto {
		d.model = ""
	}
	return agent.Event{Kind: agent.KindSessionStarted, SessionID: d.session, Model: d.model}
}

// said returns the event of a message of the model. The repeated prompt of the user is a
// heartbeat.
func (d *decoder) said(raw []byte, l *line) agent.Event {
	if !l.role.Is("assistant") {
		d.open = false
		return agent.Event{Kind: agent.KindHeartbeat}
	}
	if l.delta {
		d.piece.Learn(raw, l.timestamp, l.content)
		return d.delta(l.content)
	}
	d.open = false
	d.messages++
	d.message = strconv.Itoa(d.messages)
	return agent.Event{Kind: agent.KindText, MessageID: d.message, Text: l.content.String()}
}

// delta returns the event of a piece of a message: the last one if it is open, else a
// new one.
func (d *decoder) delta(text jsonline.Text) agent.Event {
	if !d.open {
		d.messages++
		d.message = strconv.Itoa(d.messages)
		d.open = true
	}
	return agent.Event{Kind: agent.KindText, MessageID: d.message, Delta: true, Text: text.String()}
}

func (d *decoder) toolResult(id, output jsonline.Text, succeeded bool) agent.Event {
	d.open = false
	d.tool = agent.Tool{ID: id.String(), Output: agent.Quoted(output)}
	return agent.Event{Kind: agent.KindToolResult, Failed: !succeeded, Tool: &d.tool}
}

func (l *line) succeeded() bool { return l.status.Is("success") }

func (d *decoder) result(l *line, events []agent.Event) []agent.Event {
	if s := l.stats; s != nil {
		if model := s.model(); d.model == "" && model != "" {
			d.model = model
			events = append(events, agent.Event{Kind: agent.KindSessionStarted, SessionID: d.session, Model: model})
		}
		if s.total > 0 {
			// The output tokens exclude thoughts; the total includes them.
			thoughts := max(s.total-s.input-s.output, 0)
			events = append(events, agent.Event{Kind: agent.KindUsage, Usage: &agent.Usage{
				Input: s.input, Cached: s.cached, Output: s.output + thoughts, Reasoning: thoughts,
			}})
		}
	}
	e := agent.Event{Kind: agent.KindResult, Failed: !l.succeeded()}
	if e.Failed {
		e.Text = d.problem
		if l.failed {
			e.Text = l.error.message.String()
			e.Failure = classify(l.error.kind.String(), e.Text)
		}
	}
	d.open, d.problem = false, ""
	return append(events, e)
}

// model returns the model with the most output: small models only select it.
func (s *stats) model() string {
	var most string
	for _, name := range slices.Sorted(maps.Keys(s.models)) {
		if name != auto && (most == "" || s.models[name].output > s.models[most].output) {
			most = name
		}
	}
	return most
}

// classify returns the class of a failure by the error's type, or by the API error that
// its message has as JSON.
func classify(kind, message string) agent.Failure {
	if kind == "FatalAuthenticationError" {
		return agent.FailureAuthentication
	}
	_, code, ok := strings.Cut(message, `"code":`)
	if !ok {
		return ""
	}
	code = strings.TrimLeft(code, " ")
	switch {
	case strings.HasPrefix(code, "401"), strings.HasPrefix(code, "403"):
		return agent.FailureAuthentication
	case strings.HasPrefix(code, "429"):
		return agent.FailureQuota
	}
	return ""
}

// recognize reports whether only Gemini CLI writes the line: each has a time and no ID.
func recognize(raw []byte) bool {
	var l line
	if !l.read(raw) || l.timestamp.IsEmpty() || !l.uuid.IsEmpty() {
		return false
	}
	switch string(l.kind.Bytes()) {
	case "init":
		return !l.sessionID.IsEmpty() && !l.model.IsEmpty()
	case "message":
		return l.role.Is("user") || l.role.Is("assistant")
	case "tool_use":
		return !l.toolID.IsEmpty() && !l.toolName.IsEmpty()
	case "tool_result":
		return !l.toolID.IsEmpty() && !l.status.IsEmpty()
	case "error":
		return !l.severity.IsEmpty()
	case "result":
		return !l.status.IsEmpty() && l.stats != nil
	}
	return false
}
