package capture

import (
	"strings"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
)

// MaxAnswer bounds the answer that is kept, in bytes: half of it head, half of it
// tail.
const MaxAnswer = 4 << 20

// An Answer collects an agent's final answer: the text of the last message after
// the last tool call. The zero value is empty. It is used by one goroutine at a
// time.
type Answer struct {
	message string
	text    Buffer
	cut     bool // a line of the agent was too long to be read
}

// Note records the text of an event. Events of subagents are not part of the answer.
func (a *Answer) Note(e *agent.Event) {
	if e.Subagent != "" {
		return
	}
	switch e.Kind {
	case agent.KindText:
		a.add(e)
	case agent.KindToolCall, agent.KindFileChange:
		// Some runtimes report a changed file instead of the call that did it.
		a.reset()
	}
}

func (a *Answer) reset() {
	a.message, a.cut = "", false
	a.text.Reset()
}

func (a *Answer) add(e *agent.Event) {
	// Without an ID, each text that is not a delta is a separate message.
	if same := e.MessageID != "" && e.MessageID == a.message; !same && !(e.Delta && e.MessageID == "" && a.message == "") {
		a.reset()
		a.message = strings.Clone(e.MessageID)
	}
	a.cut = a.cut || e.Truncated
	a.text.Limit = MaxAnswer / 2
	a.text.WriteString(e.Text)
}

// Empty reports whether there is no text.
func (a *Answer) Empty() bool { return a.text.Size() == 0 }

// Text returns the answer and whether it is truncated. Without an answer it returns the
// text of the result, unless result is nil or failed.
func (a *Answer) Text(result *agent.Event) (text string, truncated bool) {
	if a.Empty() && result != nil && !result.Failed {
		a.add(result)
	}
	c := a.text.Captured()
	if !c.Truncated {
		return c.String(), a.cut
	}
	return string(wholeEnd(c.Head)) + string(wholeBegin(c.Tail)), true
}

// wholeEnd returns b without the beginning of a character that it ends with.
func wholeEnd(b []byte) []byte {
	for i := 1; i <= min(len(b), utf8.UTFMax-1); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// wholeBegin returns b without the end of a character that it begins with.
func wholeBegin(b []byte) []byte {
	for i := range min(len(b), utf8.UTFMax-1) {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}
