package appserver

import (
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// cutLine is a line of which only the head is there, because it is too long or
// because the server cut it, or that is no message. What the head says holds, and
// so does that a turn has ended; how it has ended must be in the head, or it
// counts as failed.
type cutLine struct {
	head []byte
	long bool
	size int64
}

// raw is the line as an event that says nothing else.
func (c *cutLine) raw() *agent.Event {
	e := &agent.Event{Kind: agent.KindRaw, Text: strings.ToValidUTF8(string(c.head), "\uFFFD"), Truncated: c.long}
	if c.long {
		e.Size = c.size
	}
	return e
}

// mark makes an event of what the head says one of the line. It is judged when it
// tells how a turn has ended.
func (c *cutLine) mark(e *agent.Event, judged bool) {
	if e.Kind == agent.KindRaw {
		*e = *c.raw()
		return
	}
	e.Truncated = true
	if c.long {
		e.Size = c.size
	}
	if e.Kind == agent.KindResult && !e.Failed && !judged {
		e.Failed, e.Text = true, "how the turn has ended cannot be read"
		if c.long {
			e.Text += fmt.Sprintf(": the line that tells has %d bytes", c.size)
		}
	}
}
