package session

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/jsonline"
	"github.com/busdk/bus-agent/session/control"
)

// logPrinter writes the log of a session as readable text.
type logPrinter struct {
	*cmdline.Conversation
	handle   string // name of the session
	messages bool   // write the messages to the agent, too
}

func newLogPrinter(prog *cmdline.Program, to io.Writer, entry control.Entry) *logPrinter {
	return &logPrinter{Conversation: prog.NewConversation(to, entry.Runtime), handle: entry.Label()}
}

func (p *logPrinter) print(r *control.LogRecord) error {
	switch {
	case r.Event != nil:
		if err := p.Event(r.Event); err != nil {
			return err
		}
		if r.Event.ApprovalID != "" && !r.Event.Failed {
			id := cmdline.ShellWord(r.Event.ApprovalID)
			if r.Event.Kind == agent.KindQuestion {
				return p.Line("[question " + id + "] answer with: " + cmdline.Name + " session answer " + p.handle + " --request " + id + strings.Repeat(" ANSWER", len(r.Event.Questions)))
			}
			return p.Line("[approval request " + id + "] answer with: " + cmdline.Name + " session approve " + p.handle + " " + id + " accept")
		}
	case r.Message != "" && p.messages:
		return p.Line("> " + r.Message)
	case r.Answered != nil:
		text := string(r.Answered.Decision)
		for i, answer := range r.Answered.Answers {
			if i > 0 {
				text += "; "
			}
			text += strings.Join(answer, ", ")
		}
		return p.Line(fmt.Sprintf("[answer to %s] %s", r.Answered.Approval, text))
	case r.Warning != "":
		return p.Line("[warning] " + r.Warning)
	case r.Stopped != "":
		return p.Line("[session ended] " + r.Stopped)
	case r.Ended != nil && r.Ended.Failure != nil && p.messages:
		return p.Line(fmt.Sprintf("[turn %d failed] %s", r.Turn, r.Ended.Failure.Text))
	}
	return nil
}

// missed reports how many lines of the log are not shown.
func (p *logPrinter) missed(n int64) error {
	return p.Line(fmt.Sprintf("[%d lines of the log are missing: they arrived faster than they were read]", n))
}

// eventWatcher returns a watcher that prints events in JSON, a line each, and shows
// warnings, as a run does.
func eventWatcher(prog *cmdline.Program) control.Watcher {
	var buffer []byte
	return control.Watcher{
		Record: func(r *control.LogRecord) error {
			if r.Warning != "" {
				prog.Screen.Warn(r.Warning)
			}
			if r.Event == nil {
				return nil
			}
			buffer = formatters.JSON().Append(buffer[:0], r.Event)
			_, err := prog.Out.Write(buffer)
			return err
		},
		Missed: warnMissed(prog),
	}
}

// logWatcher returns a watcher that prints the lines of the log.
func logWatcher(prog *cmdline.Program) control.Watcher {
	return control.Watcher{
		Record: func(r *control.LogRecord) error {
			line, err := json.Marshal(r)
			if err != nil {
				return err
			}
			_, err = prog.Out.Write(append(jsonline.EscapeControls(line, 0), '\n'))
			return err
		},
		Missed: warnMissed(prog),
	}
}

func warnMissed(prog *cmdline.Program) func(int64) error {
	return func(n int64) error {
		prog.Screen.Warn(fmt.Sprintf("%d lines of the log are missing: they arrived faster than they were read", n))
		return nil
	}
}
