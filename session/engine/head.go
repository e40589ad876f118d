package engine

import (
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
)

// A Head is the beginning of an agent's line that is too long to be read, or that the
// agent has cut, for engines. What it says is used. If it ends a turn and does not say
// how, the turn counts as failed.
type Head struct {
	Line []byte
	// Long says that the line was too long, and Size is the length of all of it
	// in bytes.
	Long bool
	Size int64
}

// Mended returns the head as a whole line of JSON, nil where it cannot be one.
func (h *Head) Mended() []byte { return formatters.Mend(h.Line) }

// Raw returns the event of a line of which nothing is understood.
func (h *Head) Raw() *agent.Event {
	e := &agent.Event{Kind: agent.KindRaw, Text: strings.ToValidUTF8(string(h.Line), "\uFFFD"), Truncated: h.Long}
	if h.Long {
		e.Size = h.Size
	}
	return e
}

// Mark makes an event of the mended line one of the truncated line. judged reports that
// the head says whether a turn that it ends has failed.
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
