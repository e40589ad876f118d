package cli

import (
	"context"

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

func (inv *invocation) sessionWatchCommand() *urfave.Command {
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
			toggle("follow", "continue until the session ends", &o.follow),
			number("last", "begin with the last `N` records; 0 for none (default: all that are kept)", 0, &o.last),
			option("until", "follow until the session is in `STATE`: ready or waiting", &o.until).of(words(string(session.StateReady), string(session.StateWaiting))),
			option("output-format", "print `OUTPUT`: text or events (default: text)", &o.output).of(words("text", "events")),
		},
		UsageText: inv.usageText(exitCodes("it was shown", "the session could not be watched to the end"),
			example{"wait until it asks for something", "bus-agent session watch review --last 0 --until waiting"},
			example{"what was said up to now", "bus-agent session watch review"},
		),
		BashComplete: completes(inv.sessionWords(allSessions)),
		Action: inv.action(hasJSON|slow, func(ctx context.Context, call call) error {
			return inv.watchSession(ctx, o, call.args[0])
		}),
	}
}

func (inv *invocation) watchSession(ctx context.Context, o *watchOptions, handle string) error {
	until := session.State(o.until)
	if o.until != "" && until != session.StateReady && until != session.StateWaiting {
		return agent.Usagef("state %q is not one of ready, waiting", o.until)
	}
	if o.output != "" && o.output != "text" && o.output != "events" {
		return agent.Usagef("output format %q is not one of text, events", o.output)
	}
	if o.output == "events" && inv.global.json() {
		return agent.Usagef("--output-format events and --format json both want standard output; leave one out")
	}
	client, entry, err := inv.findSession(handle)
	if err != nil {
		return err
	}
	p := inv.newRecordPrinter(inv.out, entry)
	p.messages = true
	watcher := control.Watcher{Record: p.print, Missed: p.missed}
	switch {
	case inv.global.json():
		watcher = inv.recordWatcher()
	case o.output == "events":
		watcher = inv.eventWatcher()
	}
	err = client.Watch(ctx, entry, o.last, o.follow || o.until != "", until, watcher)
	if lineErr := p.endLine(); err == nil {
		err = lineErr
	}
	return canceledBy(ctx, err)
}
