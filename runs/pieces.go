package runs

import (
	"bytes"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// pieces puts together what comes in pieces, as far as a secret may be spread over
// them: whoever reads the events joins them.
type pieces struct {
	last   *Event // the piece of which something may be held back
	masked *runner.MaskWriter
	passed bytes.Buffer
}

// take returns what is to be written for an entry: the rest of the text before it
// and the entry itself, or as much of it as is settled.
func (p *pieces) take(e *Event, mask *runner.Masker) []*Event {
	piece := e.Delta && (e.Kind == agent.KindText || e.Kind == agent.KindThinking)
	var all []*Event
	if !piece || p.last == nil || p.last.Kind != e.Kind || p.last.MessageID != e.MessageID || p.last.Subagent != e.Subagent {
		if rest := p.rest(); rest != nil {
			all = append(all, rest)
		}
	}
	if !piece {
		return append(all, e)
	}
	if p.last == nil {
		p.masked = mask.Writer(&p.passed)
	}
	_, _ = p.masked.Write([]byte(e.Text)) // to memory
	now := *e
	now.Text = p.passed.String()
	p.passed.Reset()
	p.last = &now
	if now.Text == "" && e.Text != "" {
		return all
	}
	return append(all, &now)
}

// rest returns what is held back of a text that is over; nil for nothing.
func (p *pieces) rest() *Event {
	if p.last == nil {
		return nil
	}
	_ = p.masked.Flush()
	rest := *p.last
	rest.Text = p.passed.String()
	p.passed.Reset()
	p.last = nil
	if rest.Text == "" {
		return nil
	}
	return &rest
}
