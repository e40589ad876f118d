package formatters

import (
	"strings"
	"unicode/utf8"

	"github.com/busdk/bus-agent/agent"
)

// A Stream turns the raw standard output of one run into events as it arrives:
// bytes, lines, decoder, events. A line over [MaxLine] bytes becomes one event
// of kind agent.KindRaw that is Truncated, with its head and type. Memory is
// bounded by the longest line.
//
// A Stream is used by one goroutine at a time.
type Stream struct {
	lines   Lines
	decoder Decoder
	events  func(*agent.Event) error
	decoded []agent.Event // reused from line to line
	skimmer Skimmer       // nil: all lines are decoded
	skimmed agent.Event
}

// NewStream returns a stream that decodes with d, which it uses alone from now
// on, and hands every event to events in order. An event is valid only during
// the call. An error from events ends the stream: Write and Close return it and
// hand over nothing more.
func NewStream(d Decoder, events func(*agent.Event) error) *Stream {
	s := &Stream{decoder: d, events: events}
	s.lines.Handle = s.line
	return s
}

// Skim makes a stream whose decoder is a [Skimmer] hand over only the kind of the
// events whose content does not matter to the result, up to the first result. It is
// for output that is not shown.
func (s *Stream) Skim() {
	skimmer, ok := s.decoder.(Skimmer)
	if !ok {
		return
	}
	s.skimmer = skimmer
	s.lines.brief = func(head []byte) bool {
		if s.skimmer == nil {
			return false
		}
		_, ok := s.skimmer.Skim(head)
		return ok
	}
}

// Write takes the next bytes of the output, cut anywhere. The events of all
// lines that end in p have been handed over when it returns.
func (s *Stream) Write(p []byte) (int, error) { return s.lines.Write(p) }

// Close takes the end of the output: a last line without a line break is
// decoded too.
func (s *Stream) Close() error { return s.lines.Close() }

func (s *Stream) line(line []byte, truncated bool, size int64) error {
	if truncated {
		head := wholeRunes(string(line))
		return s.events(&agent.Event{Kind: agent.KindRaw, Truncated: true, Size: size, LineType: headType(head), Text: head})
	}
	if s.skimmer != nil && (int64(len(line)) < size || len(line) > 0 && line[len(line)-1] == '}') {
		if kind, ok := s.skimmer.Skim(line); ok {
			s.skimmed = agent.Event{Kind: kind}
			return s.events(&s.skimmed)
		}
	}
	s.decoded = s.decoder.Decode(line, s.decoded[:0])
	var err error
	for i := range s.decoded {
		if s.decoded[i].Kind == agent.KindResult {
			s.skimmer = nil // whose what comes now is decides whether that was the last
		}
		if err = s.events(&s.decoded[i]); err != nil {
			break
		}
	}
	clear(s.decoded) // keep no text of the line alive
	return err
}

// wholeRunes returns text without the beginning of a character that was cut.
func wholeRunes(text string) string {
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		tail := text[len(text)-back:]
		if utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				return text[:len(text)-back]
			}
			break
		}
	}
	return text
}

// headType returns the JSON member "type" of a truncated object,
// or "". It is a hint for the reader: a member of that name inside
// another object can be taken for it.
func headType(head string) string {
	_, rest, ok := strings.Cut(head, `"type":`)
	if !ok {
		return ""
	}
	rest = strings.TrimLeft(rest, " ")
	if !strings.HasPrefix(rest, `"`) {
		return ""
	}
	name, _, ok := strings.Cut(rest[1:], `"`)
	if !ok || len(name) > 64 {
		return ""
	}
	return name
}

// Generic returns a decoder for runtimes that print plain text: every line is
// text of one message, empty lines included.
func Generic() Decoder { return generic{} }

type generic struct{}

func (generic) Decode(line []byte, events []agent.Event) []agent.Event {
	return append(events, agent.Event{
		Kind: agent.KindText, MessageID: "output", Delta: true, Text: string(line) + "\n",
	})
}
