package cli

import (
	"context"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

func (inv *invocation) runsEventsCommand() *urfave.Command {
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
			toggle("text", "print readable text", &text),
			toggle("follow", "go on until the run is over", &follow),
			runsRootFlag(&root),
		},
		UsageText: inv.usageText(exitCodes("they were printed; there may be none", "there are no events, or lines of them are damaged; the others were printed"),
			example{"the whole conversation", "bus-agent runs events latest --text"},
			example{"for a program", "bus-agent runs events latest > events.ndjson"},
		),
		BashComplete: completes(inv.runWords(&root, false)),
		Action: inv.action(slow, func(ctx context.Context, call call) error {
			_, run, err := inv.findRun(ctx, root, call.args[0])
			if err != nil {
				return err
			}
			printer := conversationPrinter(inv.eventLines())
			if text {
				printer = inv.readable(run, inv.out)
			}
			return inv.printConversation(ctx, run, follow, nil, printer)
		}),
	}
}

// runsTailCommand shows the end of a conversation.
func (inv *invocation) runsTailCommand() *urfave.Command {
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
			toggle("follow,f", "go on until the run is over", &follow),
			number("lines,n", "begin with the last `N` lines; 0 for none (default: 20)", 0, &lines),
			runsRootFlag(&root),
		},
		UsageText: inv.usageText(exitCodes("it was shown, whatever became of the run", "it could not be shown to the end"),
			example{"follow the latest run", "bus-agent runs tail -f latest"},
			example{"the last words", "bus-agent runs tail -n 5 latest"},
		),
		BashComplete: completes(inv.runWords(&root, false)),
		Action: inv.action(slow, func(ctx context.Context, call call) error {
			_, run, err := inv.findRun(ctx, root, call.args[0])
			if err != nil {
				return err
			}
			end := &lastLines{to: inv.out, most: lines}
			if err := inv.printConversation(ctx, run, follow, end, inv.readable(run, end)); err != nil || !follow {
				return err
			}
			return inv.sayEnd(run)
		}),
	}
}

// sayEnd says on standard error how a run ended that was followed.
func (inv *invocation) sayEnd(run *runs.Run) error {
	now, err := runs.ReadRun(run.Dir)
	if err != nil {
		return err
	}
	text := "the run " + handleOf(run) + " is " + oneWord(string(now.Status))
	if d := now.Duration(); d > 0 {
		text += " after " + took(d)
	}
	if now.Error != "" {
		text += ": " + oneWord(now.Error)
	}
	inv.screen.info(text)
	return nil
}

// conversationPrinter prints what stands in the events of a run.
type conversationPrinter interface {
	entry(*runs.Event) error
	// event prints an event of which nobody knows the time.
	event(*agent.Event) error
	end() error
}

// eventLines prints events in JSON, a line each.
type eventLines struct {
	inv    *invocation
	buffer []byte
}

func (inv *invocation) eventLines() *eventLines { return &eventLines{inv: inv} }

func (p *eventLines) entry(e *runs.Event) error {
	p.buffer = append(e.AppendJSON(p.buffer[:0]), '\n')
	return p.write()
}

func (p *eventLines) event(e *agent.Event) error {
	p.buffer = append(e.AppendJSON(p.buffer[:0]), '\n')
	return p.write()
}

func (p *eventLines) write() error {
	_, err := p.inv.out.Write(p.buffer)
	return err
}

func (p *eventLines) end() error { return nil }
