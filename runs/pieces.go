package runs

import (
	"bytes"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// pieces masks secrets that are spread over several events of one text, whose readers
// join them.
type pieces struct {
	last   *Event // the last piece; the end of its text may be held back
	masked *runner.MaskWriter
	passed bytes.Buffer
}

// take returns the events to write for e: the held-back rest of an earlier text, and e
// with as much of its text as cannot begin a secret.
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

// rest returns the held-back rest of a text that is over, nil for none.
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
