package cli

import (
	"context"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/control"
)

func promptFlag(v *value) *commandFlag {
	v.files = true
	return option("prompt", "read the message from `FILE`, - for standard input", v)
}

func (inv *invocation) sessionSendCommand() *command {
	var prompt, output, timeout value
	var noWait bool
	output.words = func() []string { return []string{"text", "events", "json"} }
	return &command{
		name:      "send",
		purpose:   "say something to an agent and wait for its answer",
		arguments: "ID [TEXT]",
		min:       1,
		max:       2,
		details: `Queues a message for a turn of its own and waits for the end of that turn. As
with "run", standard error shows the conversation and standard output gets the
final answer alone. The output format events prints the events of the turn instead,
json (or --format json) one object at the end, the same as "run" prints.

Ctrl-C ends the waiting; the turn goes on.`,
		json: true,
		flags: []*commandFlag{
			promptFlag(&prompt),
			option("output-format", "print `OUTPUT`: text, events or json (default: text)", &output),
			option("timeout", "interrupt the turn when it takes longer than `DURATION` (default: that of the session)", &timeout),
			toggle("no-wait", "queue the message and go; --format json tells the number of its turn", &noWait),
		},
		examples: []example{
			{"a question", `bus-agent session send review "What does this project do?"`},
			{"a message from a pipe, the answer into a file", `echo "Write a haiku about it" | bus-agent session send review --prompt - 2>/dev/null > haiku.txt`},
			{"work that nobody waits for", `bus-agent session send review --no-wait "Run the tests"`},
		},
		exits: exitCodes("the turn succeeded, or the message is queued", "the turn failed or was interrupted, or the session has ended"),
		words: inv.sessionWords(control.Entry.Served),
		slow:  true,
		run: func(ctx context.Context, call call) error {
			text, err := inv.neededText(ctx, call.args[1:], prompt)
			if err != nil {
				return err
			}
			format, err := inv.sendFormat(output)
			if err != nil {
				return err
			}
			client, entry, err := inv.findSession(call.args[0])
			if err != nil {
				return err
			}
			m := control.Message{Text: text}
			if err := parseDuration("timeout", timeout, &m.TurnTimeout); err != nil {
				return err
			}
			if noWait {
				return inv.sendAndGo(ctx, client, entry, m)
			}
			return inv.sendAndWait(ctx, client, entry, m, format)
		},
	}
}

// sendFormat returns what is printed of a turn: text, events or json.
func (inv *invocation) sendFormat(output value) (string, error) {
	switch output.text {
	case "":
		if output.set {
			return "", agent.Usagef("--output-format is given an empty value; leave it out or name something")
		}
	case "text", "events", "json":
		if inv.global.json() && output.text == "events" {
			return "", agent.Usagef("--output-format events and --format json both want standard output; leave one out")
		}
	default:
		return "", agent.Usagef("output format %q is not one of text, events, json", output.text)
	}
	switch {
	case inv.global.json():
		return "json", nil
	case output.set:
		return output.text, nil
	}
	return "text", nil
}

// queued is what is printed in JSON of a message that nobody waits for.
type queued struct {
	Turn    int  `json:"turn"`
	Steered bool `json:"steered"`
}

func (inv *invocation) sendAndGo(ctx context.Context, client *control.Client, entry control.Entry, m control.Message) error {
	turn, err := client.Send(ctx, entry, m)
	switch {
	case err != nil:
		return canceledBy(ctx, err)
	case inv.global.json():
		return inv.out.printJSON(queued{Turn: turn})
	}
	return nil
}

func (inv *invocation) sendAndWait(ctx context.Context, client *control.Client, entry control.Entry, m control.Message, format string) error {
	if err := inv.out.open(); err != nil {
		return err
	}
	v := &view{inv: inv, streamed: format != "events" && !inv.global.quiet}
	watcher, finish := inv.turnWatcher(v, entry, format)
	outcome, err := client.Ask(ctx, entry, m, watcher)
	finish()
	switch {
	case outcome.Runtime == "": // there was no turn
		return canceledBy(ctx, err)
	case format == "json":
		if printErr := inv.out.printJSON(report(outcome, err)); printErr != nil && err == nil {
			return printErr
		}
	case format == "text" && err == nil:
		return v.answer(outcome)
	}
	return err
}

// turnWatcher shows a turn while it happens, and a function that ends that.
func (inv *invocation) turnWatcher(v *view, entry control.Entry, format string) (control.Watcher, func()) {
	switch {
	case format == "events":
		return inv.eventWatcher(), func() {}
	case !v.streamed:
		return control.Watcher{}, func() {}
	}
	if v.mayspin() {
		inv.out.before = inv.screen.clear
		inv.screen.spin("waiting for " + entry.Runtime)
	}
	p := inv.newRecordPrinter(v.conversation(), entry)
	return control.Watcher{Record: p.print, Missed: p.missed}, func() {
		inv.screen.clear()
		inv.screen.endLine()
	}
}

func (inv *invocation) sessionSteerCommand() *command {
	var prompt value
	return &command{
		name:      "steer",
		purpose:   "say something to an agent while it works",
		arguments: "ID [TEXT]",
		min:       1,
		max:       2,
		details: `Adds a message to the turn that is running. Where none is, or the runtime cannot
be steered, the message becomes the next turn, before those that wait. Nothing waits
for the answer; "session watch" shows it.`,
		json:  true,
		flags: []*commandFlag{promptFlag(&prompt)},
		examples: []example{
			{"a hint", `bus-agent session steer review "Leave out the tests"`},
		},
		exits: exitCodes("the message has arrived, or is the next turn", "the session has ended"),
		words: inv.sessionWords(control.Entry.Served),
		slow:  true,
		run: func(ctx context.Context, call call) error {
			text, err := inv.neededText(ctx, call.args[1:], prompt)
			if err != nil {
				return err
			}
			client, entry, err := inv.findSession(call.args[0])
			if err != nil {
				return err
			}
			turn, steered, err := client.Steer(ctx, entry, control.Message{Text: text})
			switch {
			case err != nil:
				return canceledBy(ctx, err)
			case inv.global.json():
				return inv.out.printJSON(queued{turn, steered})
			case !steered:
				inv.screen.info("it could not be added to a running turn; it is a turn of its own")
			}
			return nil
		},
	}
}
