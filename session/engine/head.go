package engine

import (
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// A Head is the beginning of a truncated line, for engines: one that is too long to
// be read, or that the agent has cut. Engines use what it contains. If it ends a turn
// and lacks the outcome, the turn counts as failed.
type Head struct {
	Line []byte
	// Long reports that the line was too long; Size is the length of the whole
	// line in bytes.
	Long bool
	Size int64
}

// Mended returns the head completed to a whole line of JSON, or nil if that is
// impossible.
func (h *Head) Mended() []byte { return formatters.Mend(h.Line) }

// Raw returns the event of a line that the engine does not understand at
// all.
func (h *Head) Raw() *agent.Event {
	e := &agent.Event{Kind: agent.KindRaw, Text: strings.ToValidUTF8(string(h.Line), "\uFFFD"), Truncated: h.Long}
	if h.Long {
		e.Size = h.Size
	}
	return e
}

// Mark marks an event decoded from the mended line as truncated. judged reports that
// the head contains the outcome of the turn, if it ends one.
func (h *Head) Mark(e *agent.Event, judged bool) {
	if e.Kind == agent.KindRaw {
		*e = *h.Raw()
		return
	}
	e.Truncated = true
	if h.Long {
		e.Size = h.Size
	}
	if e.Kind == agent.KindResult && !e.Failed && !judged {
		e.Failed, e.Text = true, "how the turn has ended cannot be read"
		if h.Long {
			e.Text += fmt.Sprintf(": the line with it has %d bytes", h.Size)
		}
	}
}
