package cli

import (
	"context"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/control"
)

func promptFlag(v *string) urfave.Flag {
	return option("prompt", "read the message from `FILE`, - for standard input", v).of(files)
}

func (inv *invocation) sessionSendCommand() *urfave.Command {
	var prompt, output, timeout string
	var noWait bool
	return &urfave.Command{
		Name:      "send",
		Usage:     "say something to an agent and wait for its answer",
		ArgsUsage: "ID [TEXT]",
		Description: `Queues a message for a turn of its own and waits for the end of that turn. As
with "run", standard error shows the conversation and standard output gets the
final answer alone. The output format events prints the events of the turn instead,
json (or --format json) one object at the end, the same as "run" prints.

Ctrl-C ends the waiting; the turn continues.`,
		Flags: []urfave.Flag{
			promptFlag(&prompt),
			option("output-format", "print `OUTPUT`: text, events or json (default: text)", &output).of(words("text", "events", "json")),
			option("timeout", "interrupt the turn when it takes longer than `DURATION` (default: that of the session)", &timeout),
			toggle("no-wait", "queue the message and go; --format json tells the number of its turn", &noWait),
		},
		UsageText: inv.usageText(exitCodes("the turn succeeded, or the message is queued", "the turn failed or was interrupted, or the session has ended"),
			example{"a question", `bus-agent session send review "What does this project do?"`},
			example{"a message from a pipe, the answer into a file", `echo "Write a haiku about it" | bus-agent session send review --prompt - 2>/dev/null > haiku.txt`},
			example{"do not wait for the answer", `bus-agent session send review --no-wait "Run the tests"`},
		),
		BashComplete: completes(inv.sessionWords(control.Entry.Served)),
		Action: inv.action(hasJSON|slow, func(ctx context.Context, call call) error {
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
		}),
	}
}

// sendFormat returns what is printed of a turn: text, events or json.
func (inv *invocation) sendFormat(output string) (string, error) {
	switch output {
	case "":
	case "text", "events", "json":
		if inv.global.json() && output == "events" {
			return "", agent.Usagef("--output-format events and --format json both want standard output; leave one out")
		}
	default:
		return "", agent.Usagef("output format %q is not one of text, events, json", output)
	}
	switch {
	case inv.global.json():
		return "json", nil
	case output != "":
		return output, nil
	}
	return "text", nil
}

// queued is what is printed in JSON of a message whose answer is not waited for.
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

func (inv *invocation) sessionSteerCommand() *urfave.Command {
	var prompt string
	return &urfave.Command{
		Name:      "steer",
		Usage:     "say something to an agent while it works",
		ArgsUsage: "ID [TEXT]",
		Description: `Adds a message to the turn that is running. Where none is, or the runtime cannot
be steered, the message becomes the next turn, before those that wait. Nothing waits
for the answer; "session watch" shows it.`,
		Flags:        []urfave.Flag{promptFlag(&prompt)},
		UsageText:    inv.usageText(exitCodes("the message has arrived, or is the next turn", "the session has ended"), example{"a hint", `bus-agent session steer review "Leave out the tests"`}),
		BashComplete: completes(inv.sessionWords(control.Entry.Served)),
		Action: inv.action(hasJSON|slow, func(ctx context.Context, call call) error {
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
		}),
	}
}
