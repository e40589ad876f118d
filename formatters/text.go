package formatters

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/jsonline"
)

// Text returns the renderer of one run's readable conversation; it serves every
// runtime. Text is rendered as it was received, without wrapping or
// indentation, and is safe to print (see [Sanitize]), also where a character or
// an escape sequence is cut between two deltas.
//
// What the agent says has no mark. Everything else begins with a mark at the start
// of a line: [thinking], [tool] with name and essential input, [result], [file],
// [plan], [approval], [denied], [question], [retry], [warning], [failed]. An approval
// request is shown with all of its input, as JSON. The options of a question are
// numbered. Further lines of an approval, a question, a warning or a failure begin with
// "|", and so does the input of a tool call that the agent reports later. A tool's output is bounded: head, tail and about how
// many bytes were left out, as the agent wrote them. Lines that no decoder knew are
// shown as they are. Session starts, usage, heartbeats and unknown kinds render
// nothing. A successful result ends the line; its answer is rendered unless it is the end
// of what the agent has said.
func Text() agent.Formatter { return &text{} }

type text struct {
	safe sanitizer
	open bool // the last line is not ended

	// The message that deltas continue.
	kind     agent.Kind
	message  string
	subagent string

	// A warning is often repeated as the reason of the failure.
	warned string

	// The tool call that was rendered last, while nothing else was.
	called struct{ id, line string }

	// An answer is often what the agent said last: the end of that, in the turn.
	said []byte
	turn int
}

func (t *text) Append(dst []byte, e *agent.Event) []byte {
	start := len(dst)
	dst = t.append(dst, e)
	if len(dst) > start {
		t.open = dst[len(dst)-1] != '\n'
		if e.Kind != agent.KindToolCall {
			t.called.id = ""
		}
	}
	return dst
}

func (t *text) append(dst []byte, e *agent.Event) []byte {
	switch e.Kind {
	case agent.KindText:
		return t.say(dst, e, "")
	case agent.KindThinking:
		return t.say(dst, e, "[thinking] ")
	case agent.KindToolCall:
		return t.call(dst, e)
	case agent.KindToolResult:
		return t.result(dst, e)
	case agent.KindFileChange:
		return t.files(t.begin(dst), e)
	case agent.KindPlan:
		return t.plan(t.begin(dst), e)
	case agent.KindApproval:
		return t.approval(t.begin(dst), e)
	case agent.KindQuestion:
		return t.questions(t.begin(dst), e)
	case agent.KindRetry:
		return t.retry(t.begin(dst), e)
	case agent.KindWarning:
		t.warned = strings.Clone(limit(e.Text, maxWarned))
		return t.line(t.begin(dst), "[warning] ", e.Text)
	case agent.KindRaw:
		return t.unknown(t.begin(dst), e)
	case agent.KindResult:
		return t.end(t.begin(dst), e)
	}
	return dst
}

// maxWarned bounds how much of a warning is remembered.
const maxWarned = 4 << 10

// say renders what the agent says or thinks.
func (t *text) say(dst []byte, e *agent.Event, mark string) []byte {
	if e.Text == "" {
		return dst
	}
	if e.Kind == agent.KindText && e.Subagent == "" {
		t.note(e)
	}
	if !e.Delta {
		dst = t.begin(dst)
		dst = t.mark(dst, e, mark)
		return t.endLine(clean(t, dst, e.Text))
	}
	if t.kind != e.Kind || t.message != e.MessageID || t.subagent != e.Subagent {
		dst = t.begin(dst)
		t.kind, t.message, t.subagent = e.Kind, strings.Clone(e.MessageID), strings.Clone(e.Subagent)
		dst = t.mark(dst, e, mark)
	}
	return appendSafe(&t.safe, dst, e.Text)
}

func (t *text) mark(dst []byte, e *agent.Event, mark string) []byte {
	if e.Subagent != "" {
		dst = append(dst, "[subagent] "...)
	}
	return append(dst, mark...)
}

// begin ends what deltas have left open: a cut character, a cut escape
// sequence, the line.
func (t *text) begin(dst []byte) []byte {
	start := len(dst)
	dst = t.safe.end(dst)
	open := t.open || len(dst) > start
	t.kind, t.message, t.subagent = "", "", ""
	if open {
		dst = append(dst, '\n')
	}
	t.open = false
	return dst
}

// clean appends the safe part of a whole text.
func clean[T ~string | ~[]byte](t *text, dst []byte, s T) []byte {
	return t.safe.end(appendSafe(&t.safe, dst, s))
}

// endLine ends the line that dst ends with. Something was appended before.
func (t *text) endLine(dst []byte) []byte {
	if len(dst) > 0 && dst[len(dst)-1] != '\n' {
		dst = append(dst, '\n')
	}
	return dst
}

// line renders a mark and a text that ends its line.
func (t *text) line(dst []byte, mark, s string) []byte {
	dst = append(dst, mark...)
	if s == "" && strings.HasSuffix(mark, " ") {
		dst = dst[:len(dst)-1]
	}
	return t.endLine(clean(t, dst, below(strings.TrimRight(s, "\n"))))
}

func (t *text) files(dst []byte, e *agent.Event) []byte {
	mark := "[file] "
	if e.Failed {
		mark = "[file, failed] "
	}
	for _, c := range e.Changes {
		dst = append(dst, mark...)
		dst = clean(t, dst, oneLine(c.Action))
		dst = append(dst, ' ')
		dst = t.endLine(clean(t, dst, oneLine(c.Path)))
	}
	return dst
}

func (t *text) plan(dst []byte, e *agent.Event) []byte {
	dst = append(dst, "[plan]\n"...)
	for _, step := range e.Plan {
		switch step.Status {
		case "completed":
			dst = append(dst, "[x] "...)
		case "in_progress":
			dst = append(dst, "[>] "...)
		default:
			dst = append(dst, "[ ] "...)
		}
		dst = t.endLine(clean(t, dst, step.Text))
	}
	return dst
}

func (t *text) approval(dst []byte, e *agent.Event) []byte {
	mark := "[approval] "
	if e.Failed {
		mark = "[denied] "
	}
	if e.Policy != nil {
		mark = "[" + policyMark(e.Policy) + "] "
	}
	dst = append(dst, mark...)
	if e.Tool != nil {
		if e.ApprovalID != "" {
			dst = t.whole(dst, e.Tool)
		} else {
			dst = append(dst, below(string(new(text).toolLine(nil, e.Tool)))...)
		}
		if e.Text != "" {
			dst = append(dst, ": "...)
		}
	}
	return t.endLine(clean(t, dst, below(strings.TrimRight(e.Text, "\n"))))
}

// policyMark says how a policy answered.
func policyMark(p *agent.PolicyAnswer) string {
	by := "the default"
	if p.Rule > 0 {
		by = "rule " + strconv.Itoa(p.Rule)
	}
	done := "accepted"
	if p.Decision == "decline" {
		done = "declined"
	}
	return done + " by policy, " + by
}

// whole renders a tool call that the user is to allow: all of it, as JSON on one
// line, which shows also what a terminal would hide or act on.
func (t *text) whole(dst []byte, tool *agent.Tool) []byte {
	dst = clean(t, dst, oneLine(tool.Name))
	if len(tool.Input) == 0 {
		return dst
	}
	var input bytes.Buffer
	if json.Compact(&input, tool.Input) != nil { // it is shown as it is
		input.Reset()
		input.Write(tool.Input)
	}
	return clean(t, append(dst, ' '), oneLine(string(jsonline.EscapeControls(input.Bytes(), 0))))
}

// below returns a text with its lines behind the first one marked as such: no line
// of an agent's may look like one of ours.
func below(s string) string { return strings.ReplaceAll(s, "\n", "\n  | ") }

func (t *text) retry(dst []byte, e *agent.Event) []byte {
	dst = append(dst, "[retry"...)
	if e.Attempt > 0 {
		dst = append(dst, ' ')
		dst = strconv.AppendInt(dst, int64(e.Attempt), 10)
		if e.MaxAttempts > 0 {
			dst = append(dst, '/')
			dst = strconv.AppendInt(dst, int64(e.MaxAttempts), 10)
		}
	}
	return t.line(dst, "] ", e.Text)
}

// maxSaid bounds how much of what the agent said is remembered, in bytes.
const maxSaid = 1 << 10

// note remembers the end of what the agent says.
func (t *text) note(e *agent.Event) {
	if t.turn != e.Turn {
		t.said, t.turn = t.said[:0], e.Turn
	}
	t.said = append(t.said, e.Text[max(0, len(e.Text)-maxSaid):]...)
	if more := len(t.said) - maxSaid; more > maxSaid {
		t.said = append(t.said[:0], t.said[more:]...)
	}
}

// hasSaid reports whether the agent has ended with the last line of answer, in the turn.
func (t *text) hasSaid(answer string, turn int) bool {
	answer = strings.TrimSpace(answer)
	answer = answer[strings.LastIndexByte(answer, '\n')+1:]
	answer = answer[max(0, len(answer)-maxSaid/2):]
	return answer == "" || t.turn == turn && bytes.HasSuffix(bytes.TrimSpace(t.said), []byte(answer))
}

func (t *text) end(dst []byte, e *agent.Event) []byte {
	switch {
	case e.Failed:
	case t.hasSaid(e.Text, e.Turn):
		return dst
	default:
		t.note(e)
		return t.endLine(clean(t, dst, e.Text))
	}
	dst = append(dst, "[failed"...)
	if e.Failure != "" {
		dst = append(dst, ": "...)
		dst = clean(t, dst, string(e.Failure))
	}
	reason := e.Text
	if limit(reason, maxWarned) == t.warned {
		reason = ""
	}
	return t.line(dst, "] ", reason)
}

// maxHead is how much of a truncated line is shown.
const maxHead = 2 << 10

func (t *text) unknown(dst []byte, e *agent.Event) []byte {
	if !e.Truncated {
		return append(clean(t, dst, e.Text), '\n')
	}
	dst = append(dst, "[line of "...)
	dst = strconv.AppendInt(dst, e.Size, 10)
	dst = append(dst, " bytes"...)
	if e.LineType != "" {
		dst = append(dst, ", type "...)
		dst = clean(t, dst, oneLine(e.LineType))
	}
	return t.line(dst, ", too long to be read] ", limit(e.Text, maxHead))
}
