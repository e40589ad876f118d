package delegation

import (
	"strings"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

const (
	maxLine = 200     // of a note's line, in bytes
	maxText = 8 << 10 // of a note's text, in bytes
)

// A note is one thing that an agent did.
type note struct {
	turn int
	kind agent.Kind
	text string // printable
}

// line returns the note as one line.
func (n note) line() string {
	line, _, more := strings.Cut(strings.TrimSpace(n.text), "\n")
	if len(line) > maxLine {
		line, more = headOf(line, maxLine), true
	}
	if more {
		line += " …"
	}
	return line
}

// A story makes notes from events. It joins the parts of a message.
type story struct {
	report func(note)

	turn    int
	message string // ID of the message in text
	text    strings.Builder
}

// add adds an event.
func (s *story) add(e *agent.Event) {
	if e.Kind == agent.KindText {
		if s.text.Len() > 0 && (!e.Delta || e.MessageID != s.message) {
			s.flush()
		}
		s.turn, s.message = e.Turn, e.MessageID
		if room := maxText - s.text.Len(); room > 0 {
			s.text.WriteString(headOf(e.Text, room))
		}
		if !e.Delta && e.MessageID == "" {
			s.flush()
		}
		return
	}
	if text := describe(e); text != "" {
		s.flush()
		s.report(note{e.Turn, e.Kind, formatters.SanitizeString(text)})
	}
}

// flush reports the message that is not complete.
func (s *story) flush() {
	if text := strings.TrimSpace(formatters.SanitizeString(s.text.String())); text != "" {
		s.report(note{s.turn, agent.KindText, text})
	}
	s.text.Reset()
}

// describe returns an event as text, "" if the caller need not know it.
func describe(e *agent.Event) string {
	switch e.Kind {
	case agent.KindToolCall:
		if e.Delta || e.Tool == nil {
			return ""
		}
		return strings.TrimSpace(e.Tool.Name + " " + formatters.Essence(e.Tool.Input))
	case agent.KindFileChange:
		var lines []string
		for _, c := range e.Changes {
			lines = append(lines, c.Action+" "+c.Path)
		}
		if e.Failed && len(lines) > 0 {
			lines[0] = "failed: " + lines[0]
		}
		return headOf(strings.Join(lines, "\n"), maxText)
	case agent.KindApproval:
		if e.Tool == nil {
			return "asks for approval"
		}
		return strings.TrimSpace("asks for approval: " + e.Tool.Name + " " + formatters.Essence(e.Tool.Input))
	case agent.KindQuestion:
		return "asks a question"
	case agent.KindRetry:
		return "repeats a model request: " + headOf(e.Text, maxLine)
	case agent.KindWarning:
		return "warning: " + headOf(e.Text, maxLine)
	}
	return ""
}

// headOf returns the beginning of text, n bytes at most, without half a character.
func headOf(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// bounded returns text in printable form, without its middle if it is longer than n
// bytes.
func bounded(text string, n int) (_ string, cut bool) {
	text = formatters.SanitizeString(text)
	if len(text) <= n {
		return text, false
	}
	head := headOf(text, n/2)
	tail := text[len(text)-n/2:]
	for tail != "" && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return head + "\n[…]\n" + tail, true
}
