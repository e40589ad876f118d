package runs

import (
	"context"
	"io"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

func eventsCommand(prog *cmdline.Program) *urfave.Command {
	var root string
	var text, follow bool
	return &urfave.Command{
		Name:      "events",
		Usage:     "print the events of a run",
		ArgsUsage: "RUN",
		Description: `Prints the events of a run, one JSON object a line, each with its time. Events of the
kind "message" are messages to the agent. With --text, it prints the conversation as
readable text. With --follow, it continues until the run ends. If another program wrote
the record, the events are decoded from the agent's output and have no time.`,
		Flags: []urfave.Flag{
			cmdline.Switch("text", "print readable text", &text),
			cmdline.Switch("follow", "continue until the run ends", &follow),
			run.RootFlag(&root),
		},
		UsageText: cmdline.UsageText(`# the whole conversation
bus-agent runs events latest --text
# for a program
bus-agent runs events latest > events.ndjson`,
			"the events were printed; there may be none", "there are no events, or some lines are damaged; the others were printed"),
		BashComplete: completes(prog, &root, false),
		Action: action(prog, cmdline.JSON|cmdline.Slow, &root, func(ctx context.Context, t target) error {
			switch {
			case text && prog.Global.JSON():
				return cmdline.Misusef("--text and --format json exclude each other; without --text, events are JSON")
			case text:
				return printConversation(ctx, prog, t.Run, follow, nil, readable(prog, t.Run, prog.Out))
			}
			return printConversation(ctx, prog, t.Run, follow, nil, &eventLines{to: prog.Out}) // also with --format json
		}),
	}
}

func tailCommand(prog *cmdline.Program) *urfave.Command {
	var root string
	var follow bool
	lines := 20
	return &urfave.Command{
		Name:      "tail",
		Usage:     "show the end of the conversation of a run",
		ArgsUsage: "RUN",
		Description: `Prints the last lines of the conversation as readable text. With --follow, it continues
until the run ends, and shows on standard error how it ended. Here -f means --follow.
With --format json, it prints the last events as "runs events" does.`,
		Flags: []urfave.Flag{
			cmdline.Switch("follow,f", "continue until the run ends", &follow),
			cmdline.Number("lines,n", "start with the last `N` lines, or events with --format json; 0 for none (default: 20)", 0, &lines),
			run.RootFlag(&root),
		},
		UsageText: cmdline.UsageText(`# follow the latest run
bus-agent runs tail -f latest
# the last lines
bus-agent runs tail -n 5 latest`,
			"the conversation was shown, whether or not the run succeeded", "the conversation could not be shown to the end"),
		BashComplete: completes(prog, &root, false),
		Action: action(prog, cmdline.JSON|cmdline.Slow, &root, func(ctx context.Context, t target) error {
			end := &lastLines{to: prog.Out, most: lines}
			var printer conversationPrinter = readable(prog, t.Run, end)
			if prog.Global.JSON() {
				printer = &eventLines{to: end}
			}
			if err := printConversation(ctx, prog, t.Run, follow, end, printer); err != nil || !follow {
				return err
			}
			return showEnd(prog, t.Run)
		}),
	}
}

// showEnd shows on standard error how a run ended.
func showEnd(prog *cmdline.Program, run *runs.Run) error {
	now, err := runs.ReadRun(run.Dir)
	if err != nil {
		return err
	}
	text := "the run " + idOf(run) + " is " + cmdline.OneWord(string(now.Status))
	if d := now.Duration(); d > 0 {
		text += " after " + took(d)
	}
	if now.Error != "" {
		text += ": " + cmdline.OneWord(now.Error)
	}
	prog.Screen.Info(text)
	return nil
}

// A conversationPrinter prints the events of a run.
type conversationPrinter interface {
	entry(*runs.Event) error
	Event(*agent.Event) error // an event without a time
	end() error
}

// eventLines prints events in JSON, a line each.
type eventLines struct {
	to     io.Writer
	buffer []byte
}

func (p *eventLines) entry(e *runs.Event) error {
	p.buffer = append(e.AppendJSON(p.buffer[:0]), '\n')
	return p.write()
}

func (p *eventLines) Event(e *agent.Event) error {
	p.buffer = append(e.AppendJSON(p.buffer[:0]), '\n')
	return p.write()
}

func (p *eventLines) write() error {
	_, err := p.to.Write(p.buffer)
	return err
}

func (p *eventLines) end() error { return nil }
