// Package formatters turns what an agent writes into events and events into
// readable text: NDJSON lines -> []agent.Event -> text. Everything here is pure
// and streams: no input or output, no clock, no state beyond one run.
//
// Each runtime has a [Decoder]; [Text] renders the events of all of them, and
// [Generic] decodes plain text. A [Stream] decodes output as it arrives, [Format]
// renders a whole recorded one.
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

// A Skimmer is a Decoder that can classify a line by its first bytes, for callers
// that pass the output on as it is and need only the result.
type Skimmer interface {
	Decoder
	// Skim returns the kind of the event of a line whose content does not matter to
	// the result: tool results, thoughts and heartbeats, of the main agent or a
	// subagent. It reports false for a line that must be decoded. The state of the
	// decoder changes as if it had decoded the line. head is the whole line or its
	// first [SkimSize] bytes or more.
	Skim(head []byte) (kind agent.Kind, ok bool)
}

// SkimSize is the number of bytes of a line that a [Skimmer] needs.
const SkimSize = 256

// A Source makes decoders and formatters of one runtime's output; a
// registry.Runtime is one.
type Source interface {
	NewDecoder() Decoder
	NewFormatter() agent.Formatter
}
