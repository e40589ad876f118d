// Package formatters turns what an agent writes into events and events into
// readable text: NDJSON lines -> []agent.Event -> text. Everything here is pure
// and streams: no input or output, no clock, no state beyond one run.
//
// Runtimes bring a [Decoder] of their own; [Text] serves all of them, and
// [Generic] decodes plain text. A [Stream] puts lines and decoder together for
// output that is still arriving, [Format] formats a whole recorded one.
package formatters

import "github.com/busdk/bus-agent/agent"

// A Decoder turns the lines of one run into events. It may keep state from
// line to line, so each run needs its own; it is used by one goroutine.
type Decoder interface {
	// Decode appends the events of one line, given without its line break, to
	// events and returns the extended slice. It must not keep line, but the
	// events may refer to it: they are valid until line is overwritten or Decode
	// is called again. A line it does not know becomes one agent.KindRaw event; no
	// input makes it panic or fail.
	Decode(line []byte, events []agent.Event) []agent.Event
}

// A Skimmer is a Decoder of lines of JSON objects that can tell from the first
// bytes of a line what it means to a caller that does not read events: whose
// output is passed on as it is, and who wants the result alone.
type Skimmer interface {
	Decoder
	// Skim returns the kind of the event of a line, if nothing but that matters to
	// the result of a run which has not reported one: tool results, thoughts and
	// signs of life, of the main agent or of a subagent. It reports false for a
	// line that must be decoded; the decoder is as it would be had it decoded the
	// others. It is given the whole line or its first [SkimSize] bytes or more.
	Skim(head []byte) (kind agent.Kind, ok bool)
}

// SkimSize is as much of a line as a [Skimmer] needs, in bytes.
const SkimSize = 256

// A Source is what knows how to read and to render one runtime's output; a
// registry.Runtime is one.
type Source interface {
	NewDecoder() Decoder
	NewFormatter() agent.Formatter
}
