package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/jsonline"
	"github.com/busdk/bus-agent/session/control"
)

// recordPrinter makes what happens in a session readable.
type recordPrinter struct {
	to        io.Writer
	handle    string // of the session
	formatter agent.Formatter
	messages  bool // show what was said to the agent, too
	buffer    []byte
	midLine   bool
}

// newRecordPrinter returns a printer for the session of entry.
func (inv *invocation) newRecordPrinter(to io.Writer, entry control.Entry) *recordPrinter {
	p := &recordPrinter{to: to, handle: entry.Label(), formatter: formatters.Text()}
	if rt, _, err := inv.stored.registry.ParseToken(entry.Runtime); err == nil {
		p.formatter = rt.NewFormatter()
	}
	return p
}

func (p *recordPrinter) print(r *control.Record) error {
	switch {
	case r.Event != nil:
		p.buffer = p.formatter.Append(p.buffer[:0], r.Event)
		if err := p.write(p.buffer); err != nil {
			return err
		}
		if r.Event.ApprovalID != "" && !r.Event.Failed {
			id := shellWord(r.Event.ApprovalID)
			return p.line("[question " + id + "] answer it with: " + program + " session approve " + p.handle + " " + id + " accept")
		}
	case r.Message != "" && p.messages:
		return p.line("> " + r.Message)
	case r.Answered != nil:
		return p.line(fmt.Sprintf("[answer to %s] %s", r.Answered.Approval, r.Answered.Decision))
	case r.Warning != "":
		return p.line("[warning] " + r.Warning)
	case r.Stopped != "":
		return p.line("[session ended] " + r.Stopped)
	case r.Ended != nil && r.Ended.Failure != nil && p.messages:
		return p.line(fmt.Sprintf("[turn %d failed] %s", r.Turn, r.Ended.Failure.Text))
	}
	return nil
}

// missed says how much is not shown.
func (p *recordPrinter) missed(n int64) error {
	return p.line(fmt.Sprintf("[%d records are missing: they came faster than they were read]", n))
}

// line writes text on lines of its own. Those behind the first one begin such that
// they do not look like ours.
func (p *recordPrinter) line(text string) error {
	text = strings.ReplaceAll(strings.TrimRight(formatters.SanitizeString(text), "\n"), "\n", "\n  | ") + "\n"
	if p.midLine {
		text = "\n" + text
	}
	return p.write([]byte(text))
}

func (p *recordPrinter) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	p.midLine = b[len(b)-1] != '\n'
	_, err := p.to.Write(b)
	return err
}

// endLine ends the line that the agent left open.
func (p *recordPrinter) endLine() error {
	if !p.midLine {
		return nil
	}
	return p.write([]byte("\n"))
}

// events returns a watcher that prints events in JSON, a line each.
func (inv *invocation) eventWatcher() control.Watcher {
	var buffer []byte
	return control.Watcher{
		Record: func(r *control.Record) error {
			if r.Event == nil {
				return nil
			}
			buffer = formatters.JSON().Append(buffer[:0], r.Event)
			_, err := inv.out.Write(buffer)
			return err
		},
		Missed: inv.warnMissed,
	}
}

// recordWatcher returns a watcher that prints records in JSON, a line each.
func (inv *invocation) recordWatcher() control.Watcher {
	return control.Watcher{
		Record: func(r *control.Record) error {
			line, err := json.Marshal(r)
			if err != nil {
				return err
			}
			_, err = inv.out.Write(append(jsonline.EscapeControls(line, 0), '\n'))
			return err
		},
		Missed: inv.warnMissed,
	}
}

func (inv *invocation) warnMissed(n int64) error {
	inv.screen.warn(fmt.Sprintf("%d records are missing: they came faster than they were read", n))
	return nil
}
