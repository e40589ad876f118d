package runs

import (
	"context"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

func runsEventsCommand(prog *cmdline.Program) *urfave.Command {
	var root string
	var text, follow bool
	return &urfave.Command{
		Name:      "events",
		Usage:     "print the events of a run",
		ArgsUsage: "RUN",
		Description: `Prints the events of a run in JSON, one a line, each with its time; with --text
the conversation as it was shown. Events of the kind "message" are what the agent
was told. Where another program wrote the record, its events are made from the
agent's output and have no time. With --follow, what comes is printed until the run
is over.`,
		Flags: []urfave.Flag{
			cmdline.Toggle("text", "print readable text", &text),
			cmdline.Toggle("follow", "go on until the run is over", &follow),
			run.RecordsFlag(&root),
		},
		UsageText: cmdline.UsageText(`# the whole conversation
bus-agent runs events latest --text
# for a program
bus-agent runs events latest > events.ndjson`,
			"they were printed; there may be none", "there are no events, or lines of them are damaged; the others were printed"),
		BashComplete: cmdline.Completes(runWords(prog, &root, false)),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			_, run, err := findRun(prog, ctx, root, call.Args[0])
			if err != nil {
				return err
			}
			printer := conversationPrinter(&eventLines{prog: prog})
			if text {
				printer = readable(prog, run, prog.Out)
			}
			return printConversation(prog, ctx, run, follow, nil, printer)
		}),
	}
}

// runsTailCommand shows the end of a conversation.
func runsTailCommand(prog *cmdline.Program) *urfave.Command {
	var root string
	lines := 20
	var follow bool
	return &urfave.Command{
		Name:      "tail",
		Usage:     "show the end of the conversation of a run, and what comes",
		ArgsUsage: "RUN",
		Description: `Prints the last lines of the conversation, readable. With --follow, what comes is
printed until the run is over; how it ended stands on standard error. Here -f is
--follow, so the output format is --format alone, and there is none but text.`,
		Flags: []urfave.Flag{
			cmdline.Toggle("follow,f", "go on until the run is over", &follow),
			cmdline.Number("lines,n", "begin with the last `N` lines; 0 for none (default: 20)", 0, &lines),
			run.RecordsFlag(&root),
		},
		UsageText: cmdline.UsageText(`# follow the latest run
bus-agent runs tail -f latest
# the last words
bus-agent runs tail -n 5 latest`,
			"it was shown, whatever became of the run", "it could not be shown to the end"),
		BashComplete: cmdline.Completes(runWords(prog, &root, false)),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			_, run, err := findRun(prog, ctx, root, call.Args[0])
			if err != nil {
				return err
			}
			end := &lastLines{to: prog.Out, most: lines}
			if err := printConversation(prog, ctx, run, follow, end, readable(prog, run, end)); err != nil || !follow {
				return err
			}
			return sayEnd(prog, run)
		}),
	}
}

// sayEnd says on standard error how a run ended that was followed.
func sayEnd(prog *cmdline.Program, run *runs.Run) error {
	now, err := runs.ReadRun(run.Dir)
	if err != nil {
		return err
	}
	text := "the run " + handleOf(run) + " is " + cmdline.OneWord(string(now.Status))
	if d := now.Duration(); d > 0 {
		text += " after " + took(d)
	}
	if now.Error != "" {
		text += ": " + cmdline.OneWord(now.Error)
	}
	prog.Screen.Info(text)
	return nil
}

// conversationPrinter prints what stands in the events of a run.
type conversationPrinter interface {
	entry(*runs.Event) error
	// event prints an event of which nobody knows the time.
	Event(*agent.Event) error
	end() error
}

// eventLines prints events in JSON, a line each.
type eventLines struct {
	prog   *cmdline.Program
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
	_, err := p.prog.Out.Write(p.buffer)
	return err
}

func (p *eventLines) end() error { return nil }
