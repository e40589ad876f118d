package session

import (
	"context"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"
	"github.com/busdk/bus-agent/session/control"
)

// What send and watch print.
const (
	formatText   = "text"
	formatEvents = "events"
	formatJSON   = "json"
)

// outputFormat returns what is printed, after the flags --output-format and --format.
func outputFormat(prog *cmdline.Program, output string) (string, error) {
	switch {
	case prog.Global.JSON() && output == formatEvents:
		return "", cmdline.Misusef("--output-format events and --format json both want standard output; leave one out")
	case prog.Global.JSON():
		return formatJSON, nil
	}
	return output, nil
}

func sendCommand(prog *cmdline.Program) *urfave.Command {
	var prompt string
	var attach []string
	var timeout time.Duration
	var noWait bool
	output := formatText
	return &urfave.Command{
		Name:      "send",
		Usage:     "send a message to an agent and wait for its answer",
		ArgsUsage: "ID [TEXT]",
		Description: `Queues a message as a new turn and waits until that turn ends. As with "run", the
conversation is shown on standard error and the final answer is printed on standard
output. The output format events prints the events of the turn instead; json, or
--format json, prints one object at the end, as "run" does.

Ctrl-C stops waiting; the turn continues.`,
		Flags: []urfave.Flag{
			promptFlag(&prompt),
			cmdline.AttachFlag(&attach),
			cmdline.OneOf("output-format", "print `OUTPUT`: text, events or json (default: text)", &output, formatText, formatEvents, formatJSON),
			cmdline.Duration("timeout", "interrupt the turn after `DURATION` (default: the --turn-timeout of the session)", &timeout),
			cmdline.Switch("no-wait", "return when the message is queued; --format json prints the number of its turn", &noWait),
		},
		UsageText: cmdline.UsageText(`# send a message and wait for the answer
bus-agent session send review "What does this project do?"
# a message from a pipe, the answer into a file
echo "Write a haiku about it" | bus-agent session send review --prompt - 2>/dev/null > haiku.txt
# do not wait for the answer
bus-agent session send review --no-wait "Run the tests"`,
			"the turn succeeded, or the message is queued", "the turn failed or was interrupted, or the session has ended"),
		BashComplete: completes(prog, control.Entry.Served),
		Action: action(prog, cmdline.JSON|cmdline.Slow, func(ctx context.Context, t target) error {
			m, err := needMessage(ctx, prog, t.args, prompt, attach)
			if err != nil {
				return err
			}
			m.TurnTimeout = timeout
			format, err := outputFormat(prog, output)
			if err != nil {
				return err
			}
			if noWait {
				if format == formatEvents {
					return cmdline.Misusef("--no-wait waits for no events; leave out --output-format events")
				}
				turn, err := t.Send(ctx, t.entry, m)
				if err != nil {
					return err
				}
				if format == formatJSON {
					return prog.Out.PrintJSON(queued{Turn: turn})
				}
				return nil
			}
			return ask(ctx, prog, t, m, format)
		}),
	}
}

// queued is a message that is not waited for, in JSON.
type queued struct {
	Turn    int  `json:"turn"`
	Steered bool `json:"steered"`
}

// ask sends a message and shows its turn.
func ask(ctx context.Context, prog *cmdline.Program, t target, m control.Message, format string) error {
	if err := prog.Out.Open(); err != nil {
		return err
	}
	var watcher control.Watcher
	streamed := format != formatEvents && !prog.Global.Quiet
	switch {
	case format == formatEvents:
		watcher = eventWatcher(prog)
	case streamed:
		progress := run.ShowProgress(prog, t.entry.Runtime)
		p := newLogPrinter(prog, run.Conversation(prog), t.entry)
		show := func(r *control.LogRecord) error {
			if r.Event != nil {
				progress.Event(r.Event)
			}
			return p.print(r)
		}
		watcher = control.Watcher{Record: show, Missed: p.missed}
	}
	result, err := t.Ask(ctx, t.entry, m, watcher)
	prog.Screen.Clear()
	prog.Screen.EndLine()
	switch {
	case result.Runtime == "": // there was no turn
		return err
	case format == formatJSON:
		if printErr := prog.Out.PrintJSON(run.Report(result, err)); err == nil {
			err = printErr
		}
	case format == formatText && err == nil:
		err = run.PrintAnswer(prog, result, streamed)
	}
	return err
}

func steerCommand(prog *cmdline.Program) *urfave.Command {
	var prompt string
	var attach []string
	return &urfave.Command{
		Name:      "steer",
		Usage:     "send a message to an agent while it works",
		ArgsUsage: "ID [TEXT]",
		Description: `Adds a message to the running turn. If no turn is running, or the runtime does not
support this, or a file other than text is attached, the message becomes the next turn,
ahead of queued messages. The command does not wait for the answer; "session watch"
shows it.`,
		Flags: []urfave.Flag{promptFlag(&prompt), cmdline.AttachFlag(&attach)},
		UsageText: cmdline.UsageText(`# a hint
bus-agent session steer review "Leave out the tests"`,
			"the message was delivered, or is the next turn", "the session has ended"),
		BashComplete: completes(prog, control.Entry.Served),
		Action: action(prog, cmdline.JSON|cmdline.Slow, func(ctx context.Context, t target) error {
			m, err := needMessage(ctx, prog, t.args, prompt, attach)
			if err != nil {
				return err
			}
			turn, steered, err := t.Steer(ctx, t.entry, m)
			if err != nil {
				return err
			}
			if !steered && !prog.Global.JSON() {
				prog.Screen.Info("the message could not be added to a running turn; it is a separate turn")
			}
			return prog.Out.Report(queued{turn, steered}, "")
		}),
	}
}
