package soak

import (
	"errors"
	"fmt"
	"strings"
)

// A saying is a line of an agent and its result: an event, a line of the
// conversation. Nil is nothing.
type saying struct{ raw, event, text *Line }

// A passage is a group of sayings, as often as count says.
type passage struct {
	count   int64
	sayings []saying
}

// A scenario is one run of bus-agent and its expected result.
type scenario struct {
	name    string
	runtime string // ID in the preferences of a sandbox
	says    []passage
	// long says that there are lines of more than 1 MiB.
	long bool
	// answer checks the final answer; nil: there is none.
	answer func(string) error
	// ways are the ways it is run; few is how many of them are when there is
	// little time.
	ways []string
	few  int
}

// Ways to run bus-agent.
const (
	ndjson = "ndjson"
	events = "events"
	text   = "text"
	object = "json"
	format = "format"
)

// all are all ways.
var all = []string{events, text, format, object, ndjson}

// output returns what choose takes of each saying.
func (s *scenario) output(choose func(*saying) *Line) (o Output) {
	for _, p := range s.says {
		part := Part{Count: p.count}
		for i := range p.sayings {
			if line := choose(&p.sayings[i]); line != nil {
				part.Lines = append(part.Lines, *line)
			}
		}
		o = append(o, part)
	}
	return o
}

func (s *scenario) raw() Output { return s.output(func(s *saying) *Line { return s.raw }) }

func (s *scenario) events() Output { return s.output(func(s *saying) *Line { return s.event }) }

func (s *scenario) text() Output { return s.output(func(s *saying) *Line { return s.text }) }

// said returns a saying whose line, event and text differ only in their beginning and
// end.
func said(number bool, fill string, times int, raw, event, text [2]string) saying {
	line := func(around [2]string, fill string) *Line {
		between := ""
		if number {
			between = " "
		}
		l := numbered(around[0], between, fill, times, around[1])
		l.Plain = !number
		return &l
	}
	// In text the fill is unescaped.
	return saying{line(raw, fill), line(event, fill), line(text, unescape.Replace(fill))}
}

var unescape = strings.NewReplacer(`\n`, "\n", `\"`, `"`, `\\`, `\`)

// message is a message of the agent with a number in its text.
func message(fill string, times int) saying {
	return said(true, fill, times,
		[2]string{`{"type":"item.completed","item":{"type":"agent_message","text":"`, `"}}` + "\n"},
		[2]string{`{"kind":"text","text":"`, `"}` + "\n"},
		[2]string{"", "\n"})
}

// called is a tool call with a number in its ID.
func called() saying {
	raw := numbered(`{"type":"item.started","item":{"id":"`, `","type":"command_execution","command":"make","status":"in_progress"}}`, "", 0, "\n")
	event := numbered(`{"kind":"tool_call","tool":{"id":"`, `","name":"command","input":{"command":"make"}}}`, "", 0, "\n")
	text := plain("[tool] command: make\n")
	return saying{&raw, &event, &text}
}

// returned is the result of the call: lines of text that end with a line break,
// at most 4 KiB of them.
func returned(fill string, times int) saying {
	raw := numbered(`{"type":"item.completed","item":{"id":"`, `","type":"command_execution","command":"make","aggregated_output":"`, fill, times, `","exit_code":0,"status":"completed"}}`+"\n")
	event := numbered(`{"kind":"tool_result","tool":{"id":"`, `","name":"command","output":"`, fill, times, `","exit_code":0}}`+"\n")
	output := strings.Repeat(unescape.Replace(fill), times)
	text := plain("[result]\n" + output)
	if strings.Count(output, "\n") == 1 {
		text = plain("[result] " + output)
	}
	return saying{&raw, &event, &text}
}

// tooLong is a line that is too long to become its events. Of its head 64 KiB
// are kept, of which the conversation shows 2 KiB.
func tooLong(size int) saying {
	const before = `{"type":"item.completed","item":{"id":"long","type":"agent_message","text":"`
	const after = `"}}`
	raw := Line{Before: []byte(before), Fill: []byte("0123456789abcdef"), Plain: true, After: []byte(after + "\n")}
	raw.Times = (size - len(before) - len(after)) / len(raw.Fill)
	head := func(n int) string {
		return before + strings.Repeat("0123456789abcdef", n/16)[:n-len(before)]
	}
	length := raw.Size() - 1
	quoted := strings.ReplaceAll(head(64<<10), `"`, `\"`)
	event := plain(fmt.Sprintf(`{"kind":"raw","text":"%s","truncated":true,"size":%d,"line_type":"item.completed"}`+"\n", quoted, length))
	text := plain(fmt.Sprintf("[line of %d bytes, type item.completed, too long to be read] %s\n", length, head(2<<10)))
	return saying{&raw, &event, &text}
}

// succeeded is the end of a successful run.
func succeeded() saying {
	raw, event := plain(`{"type":"turn.completed"}`+"\n"), plain(`{"kind":"result"}`+"\n")
	return saying{raw: &raw, event: &event}
}

// once is a passage of single sayings.
func once(sayings ...saying) passage { return passage{1, sayings} }

// printed is a line of a runtime that prints plain text.
func printed(number bool, fill string, times int) saying {
	return said(number, fill, times,
		[2]string{"", "\n"},
		[2]string{`{"kind":"text","message_id":"output","text":"`, `\n","delta":true}` + "\n"},
		[2]string{"", "\n"})
}

// last returns a check of an answer that is the last message of a passage.
func last(p passage) func(string) error {
	line := p.sayings[len(p.sayings)-1].text
	return func(answer string) error {
		want := fmt.Sprintf("%012d %s", p.count-1, strings.Repeat(string(line.Fill), line.Times))
		if strings.TrimSuffix(answer, "\n") != want {
			return fmt.Errorf("it is %.100q and has %d bytes, want %.100q and %d", answer, len(answer), want, len(want))
		}
		return nil
	}
}

// cut is a check of an answer of which 2 MiB of head and of tail are kept.
func cut(head, tail string) func(string) error {
	return func(answer string) error {
		if len(answer) < 4<<20 || len(answer) > 4<<20+100 || !strings.HasPrefix(answer, head) || !strings.HasSuffix(strings.TrimSuffix(answer, "\n"), tail) {
			return fmt.Errorf("it has %d bytes, %.100q to %q", len(answer), answer, answer[max(len(answer)-100, 0):])
		}
		return nil
	}
}

func none(answer string) error {
	if answer != "" {
		return errors.New("there is one")
	}
	return nil
}
