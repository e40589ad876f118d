package session

import (
	"context"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/control"
)

func promptFlag(v *string) urfave.Flag {
	return cmdline.Option("prompt", "read the message from `FILE`, - for standard input", v).Of(cmdline.Files)
}

func sessionSendCommand(prog *cmdline.Program) *urfave.Command {
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
			cmdline.Option("output-format", "print `OUTPUT`: text, events or json (default: text)", &output).Of(cmdline.Words("text", "events", "json")),
			cmdline.Option("timeout", "interrupt the turn when it takes longer than `DURATION` (default: that of the session)", &timeout),
			cmdline.Toggle("no-wait", "queue the message and go; --format json tells the number of its turn", &noWait),
		},
		UsageText: cmdline.UsageText(`# a question
bus-agent session send review "What does this project do?"
# a message from a pipe, the answer into a file
echo "Write a haiku about it" | bus-agent session send review --prompt - 2>/dev/null > haiku.txt
# do not wait for the answer
bus-agent session send review --no-wait "Run the tests"`,
			"the turn succeeded, or the message is queued", "the turn failed or was interrupted, or the session has ended"),
		BashComplete: cmdline.Completes(sessionWords(prog, control.Entry.Served)),
		Action: prog.Action(cmdline.JSON|cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			text, err := neededText(prog, ctx, call.Args[1:], prompt)
			if err != nil {
				return err
			}
			format, err := sendFormat(prog, output)
			if err != nil {
				return err
			}
			client, entry, err := findSession(prog, call.Args[0])
			if err != nil {
				return err
			}
			m := control.Message{Text: text}
			if err := parseDuration("timeout", timeout, &m.TurnTimeout); err != nil {
				return err
			}
			if noWait {
				return sendAndGo(prog, ctx, client, entry, m)
			}
			return sendAndWait(prog, ctx, client, entry, m, format)
		}),
	}
}

// sendFormat returns what is printed of a turn: text, events or json.
func sendFormat(prog *cmdline.Program, output string) (string, error) {
	switch output {
	case "":
	case "text", "events", "json":
		if prog.Global.JSON() && output == "events" {
			return "", agent.Usagef("--output-format events and --format json both want standard output; leave one out")
		}
	default:
		return "", agent.Usagef("output format %q is not one of text, events, json", output)
	}
	switch {
	case prog.Global.JSON():
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

func sendAndGo(prog *cmdline.Program, ctx context.Context, client *control.Client, entry control.Entry, m control.Message) error {
	turn, err := client.Send(ctx, entry, m)
	switch {
	case err != nil:
		return cmdline.CanceledBy(ctx, err)
	case prog.Global.JSON():
		return prog.Out.PrintJSON(queued{Turn: turn})
	}
	return nil
}

func sendAndWait(prog *cmdline.Program, ctx context.Context, client *control.Client, entry control.Entry, m control.Message, format string) error {
	if err := prog.Out.Open(); err != nil {
		return err
	}
	v := &run.View{Prog: prog, Streamed: format != "events" && !prog.Global.Quiet}
	watcher, finish := turnWatcher(prog, v, entry, format)
	outcome, err := client.Ask(ctx, entry, m, watcher)
	finish()
	switch {
	case outcome.Runtime == "": // there was no turn
		return cmdline.CanceledBy(ctx, err)
	case format == "json":
		if printErr := prog.Out.PrintJSON(run.Report(outcome, err)); printErr != nil && err == nil {
			return printErr
		}
	case format == "text" && err == nil:
		return v.Answer(outcome)
	}
	return err
}

// turnWatcher shows a turn while it happens, and a function that ends that.
func turnWatcher(prog *cmdline.Program, v *run.View, entry control.Entry, format string) (control.Watcher, func()) {
	switch {
	case format == "events":
		return eventWatcher(prog), func() {}
	case !v.Streamed:
		return control.Watcher{}, func() {}
	}
	if v.MaySpin() {
		prog.Out.Before = prog.Screen.Clear
		prog.Screen.Spin("waiting for " + entry.Runtime)
	}
	p := newRecordPrinter(prog, v.Conversation(), entry)
	return control.Watcher{Record: p.print, Missed: p.missed}, func() {
		prog.Screen.Clear()
		prog.Screen.EndLine()
	}
}

func sessionSteerCommand(prog *cmdline.Program) *urfave.Command {
	var prompt string
	return &urfave.Command{
		Name:      "steer",
		Usage:     "say something to an agent while it works",
		ArgsUsage: "ID [TEXT]",
		Description: `Adds a message to the turn that is running. Where none is, or the runtime cannot
be steered, the message becomes the next turn, before those that wait. Nothing waits
for the answer; "session watch" shows it.`,
		Flags: []urfave.Flag{promptFlag(&prompt)},
		UsageText: cmdline.UsageText(`# a hint
bus-agent session steer review "Leave out the tests"`,
			"the message has arrived, or is the next turn", "the session has ended"),
		BashComplete: cmdline.Completes(sessionWords(prog, control.Entry.Served)),
		Action: prog.Action(cmdline.JSON|cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			text, err := neededText(prog, ctx, call.Args[1:], prompt)
			if err != nil {
				return err
			}
			client, entry, err := findSession(prog, call.Args[0])
			if err != nil {
				return err
			}
			turn, steered, err := client.Steer(ctx, entry, control.Message{Text: text})
			switch {
			case err != nil:
				return cmdline.CanceledBy(ctx, err)
			case prog.Global.JSON():
				return prog.Out.PrintJSON(queued{turn, steered})
			case !steered:
				prog.Screen.Info("it could not be added to a running turn; it is a turn of its own")
			}
			return nil
		}),
	}
}
