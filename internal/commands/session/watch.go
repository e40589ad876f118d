package session

import (
	"context"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

func watchCommand(prog *cmdline.Program) *urfave.Command {
	opts, output := control.WatchOptions{Last: -1}, formatText
	return &urfave.Command{
		Name:      "watch",
		Usage:     "show what happens in a session",
		ArgsUsage: "ID",
		Description: `Prints what has happened in a session as readable text. With --follow, it continues
until the session ends. With --until ready, it continues until the session is ready for
a message and none is queued. With --until waiting, it also stops at an approval request
or a question.
Sessions that have ended can be watched too.

--output-format events prints events, as "run" does. --format json prints every line
of the log as JSON, with messages, answers and results.`,
		Flags: []urfave.Flag{
			cmdline.Switch("follow", "continue until the session ends", &opts.Follow),
			cmdline.Number("last", "start with the last `N` lines of the log; 0 for none (default: all)", 0, &opts.Last),
			cmdline.OneOf("until", "continue until the session is in `STATE`: ready, or waiting (or ready)", &opts.Until, session.StateReady, session.StateWaiting),
			cmdline.OneOf("output-format", "print `OUTPUT`: text or events (default: text)", &output, formatText, formatEvents),
		},
		UsageText: cmdline.UsageText(`# wait for an approval request
bus-agent session watch review --last 0 --until waiting
# the conversation so far
bus-agent session watch review`,
			"the log was shown", "the session could not be watched to the end"),
		BashComplete: completes(prog, always),
		Action: action(prog, cmdline.JSON|cmdline.Slow, func(ctx context.Context, t target) error {
			format, err := outputFormat(prog, output)
			if err != nil {
				return err
			}
			p := newLogPrinter(prog, prog.Out, t.entry)
			p.messages = true
			watcher := control.Watcher{Record: p.print, Missed: p.missed}
			switch format {
			case formatJSON:
				watcher = logWatcher(prog)
			case formatEvents:
				watcher = eventWatcher(prog)
			}
			err = t.Watch(ctx, t.entry, opts, watcher)
			if lineErr := p.EndLine(); err == nil {
				err = lineErr
			}
			return err
		}),
	}
}
