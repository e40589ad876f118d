package cli

import (
	"context"
	"strconv"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// watchOptions are the flags of "session watch" as they were given.
type watchOptions struct {
	last, until, output value
	follow              bool
}

func (inv *invocation) sessionWatchCommand() *command {
	o := &watchOptions{}
	o.until.words = func() []string { return []string{string(session.StateReady), string(session.StateWaiting)} }
	o.output.words = func() []string { return []string{"text", "events"} }
	return &command{
		name:      "watch",
		purpose:   "show what happens in a session",
		arguments: "ID",
		min:       1,
		max:       1,
		details: `Prints what has happened, as readable text, and with --follow what happens until
the session ends. --until ends earlier: at ready, when the agent has nothing to do,
or at waiting, when it asks for permission. A session that has ended can be watched
too. With the output format events the events are printed as by "run"; --format json
prints every record, a line each, with messages, answers and results.`,
		json: true,
		flags: []*commandFlag{
			toggle("follow", "continue until the session ends", &o.follow),
			option("last", "begin with the last `N` records; 0 for none (default: all that are kept)", &o.last),
			option("until", "follow until the session is in `STATE`: ready or waiting", &o.until),
			option("output-format", "print `OUTPUT`: text or events (default: text)", &o.output),
		},
		examples: []example{
			{"wait until it asks for something", "bus-agent session watch review --last 0 --until waiting"},
			{"what was said up to now", "bus-agent session watch review"},
		},
		exits: exitCodes("it was shown", "the session could not be watched to the end"),
		words: inv.sessionWords(allSessions),
		slow:  true,
		run: func(ctx context.Context, call call) error {
			return inv.watchSession(ctx, o, call.args[0])
		},
	}
}

func (inv *invocation) watchSession(ctx context.Context, o *watchOptions, handle string) error {
	last := -1
	if o.last.set {
		n, err := strconv.Atoi(o.last.text)
		if err != nil || n < 0 {
			return agent.Usagef("--last %q is not a number from 0", o.last.text)
		}
		last = n
	}
	until := session.State(o.until.text)
	if o.until.set && until != session.StateReady && until != session.StateWaiting {
		return agent.Usagef("state %q is not one of ready, waiting", o.until.text)
	}
	if o.output.set && o.output.text != "text" && o.output.text != "events" {
		return agent.Usagef("output format %q is not one of text, events", o.output.text)
	}
	if o.output.text == "events" && inv.global.json() {
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
	case o.output.text == "events":
		watcher = inv.eventWatcher()
	}
	err = client.Watch(ctx, entry, last, o.follow || o.until.set, until, watcher)
	if lineErr := p.endLine(); err == nil {
		err = lineErr
	}
	return canceledBy(ctx, err)
}
