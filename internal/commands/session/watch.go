package session

import (
	"context"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// watchOptions are the flags of "session watch" as they were given.
type watchOptions struct {
	last          int
	until, output string
	follow        bool
}

func sessionWatchCommand(prog *cmdline.Program) *urfave.Command {
	o := &watchOptions{last: -1}
	return &urfave.Command{
		Name:      "watch",
		Usage:     "show what happens in a session",
		ArgsUsage: "ID",
		Description: `Prints what has happened, as readable text, and with --follow what happens until
the session ends. --until ends earlier: at ready, when the agent has nothing to do,
or at waiting, when it asks for permission. A session that has ended can be watched
too. With the output format events the events are printed as by "run"; --format json
prints every record, a line each, with messages, answers and results.`,
		Flags: []urfave.Flag{
			cmdline.Toggle("follow", "continue until the session ends", &o.follow),
			cmdline.Number("last", "begin with the last `N` records; 0 for none (default: all that are kept)", 0, &o.last),
			cmdline.Option("until", "follow until the session is in `STATE`: ready or waiting", &o.until).Of(cmdline.Words(string(session.StateReady), string(session.StateWaiting))),
			cmdline.Option("output-format", "print `OUTPUT`: text or events (default: text)", &o.output).Of(cmdline.Words("text", "events")),
		},
		UsageText: cmdline.UsageText(`# wait until it asks for something
bus-agent session watch review --last 0 --until waiting
# what was said up to now
bus-agent session watch review`,
			"it was shown", "the session could not be watched to the end"),
		BashComplete: cmdline.Completes(sessionWords(prog, allSessions)),
		Action: prog.Action(cmdline.JSON|cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			return watchSession(prog, ctx, o, call.Args[0])
		}),
	}
}

func watchSession(prog *cmdline.Program, ctx context.Context, o *watchOptions, handle string) error {
	until := session.State(o.until)
	if o.until != "" && until != session.StateReady && until != session.StateWaiting {
		return agent.Usagef("state %q is not one of ready, waiting", o.until)
	}
	if o.output != "" && o.output != "text" && o.output != "events" {
		return agent.Usagef("output format %q is not one of text, events", o.output)
	}
	if o.output == "events" && prog.Global.JSON() {
		return agent.Usagef("--output-format events and --format json both want standard output; leave one out")
	}
	client, entry, err := findSession(prog, handle)
	if err != nil {
		return err
	}
	p := newRecordPrinter(prog, prog.Out, entry)
	p.messages = true
	watcher := control.Watcher{Record: p.print, Missed: p.missed}
	switch {
	case prog.Global.JSON():
		watcher = recordWatcher(prog)
	case o.output == "events":
		watcher = eventWatcher(prog)
	}
	err = client.Watch(ctx, entry, o.last, o.follow || o.until != "", until, watcher)
	if lineErr := p.EndLine(); err == nil {
		err = lineErr
	}
	return cmdline.CanceledBy(ctx, err)
}
