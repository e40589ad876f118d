package streamjson

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/jsonline"
)

// cutLine is a line of which only the head is there, because it is too long or
// because the agent cut it. What the head says holds, and so does that a turn has
// ended; how it has ended must be in the head, or it counts as failed.
type cutLine struct {
	head   []byte
	mended []byte // the head as a whole line
	long   bool
	size   int64
	judged bool // it tells whether something failed
}

// cutOf returns the line that line is the head of, nil when it is whole or no
// message.
func cutOf(line []byte, long bool, size int64) *cutLine {
	if !long && (len(line) == 0 || line[0] != '{' || bytes.HasSuffix(bytes.TrimRight(line, " \t\r"), []byte("}"))) {
		return nil
	}
	c := &cutLine{head: line, mended: formatters.Mend(line), long: long, size: size}
	if c.mended == nil {
		if !long {
			return nil
		}
		c.mended = []byte("{}")
	}
	r := jsonline.New(c.mended)
	for m := r.Object(); m.Next(); {
		c.judged = c.judged || string(m.Name()) == "is_error"
	}
	return c
}

// mark makes an event of the mended line one of the line that it was.
func (c *cutLine) mark(e *agent.Event) {
	e.Truncated = true
	if c.long {
		e.Size = c.size
	}
	switch {
	case e.Kind == agent.KindRaw:
		e.Text = strings.ToValidUTF8(string(c.head), "\uFFFD")
		e.Truncated = c.long
	case e.Kind == agent.KindResult && !e.Failed && !c.judged:
		e.Failed, e.Text = true, "how the turn has ended cannot be read"
		if c.long {
			e.Text += fmt.Sprintf(": the line that tells has %d bytes", c.size)
		}
	}
}
