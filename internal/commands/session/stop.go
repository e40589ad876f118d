package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/runtimes"
	"github.com/busdk/bus-agent/session/control"
)

func stopCommand(prog *cmdline.Program) *urfave.Command {
	reason := "stopped"
	return &urfave.Command{
		Name:      "stop",
		Usage:     "end a session",
		ArgsUsage: "ID",
		Description: `Ends the agent and every process it started, and returns when all of them have ended.
Stop interrupts a running turn and does not deliver queued messages. If the session has
already ended, stop does nothing. If it has crashed, stop ends its remaining processes
and marks it as stopped. If it cannot be reached, because its socket is gone or an older
version of bus-agent holds it, stop sends SIGTERM to its process.`,
		Flags: []urfave.Flag{cmdline.String("reason", "record `TEXT` as the reason", &reason)},
		UsageText: cmdline.UsageText(`# end a session
bus-agent session stop review --reason "all done"`,
			"the session has ended", "it could not be ended"),
		BashComplete: completes(prog, control.Entry.Served),
		Action: action(prog, cmdline.Slow, func(ctx context.Context, t target) error {
			defer runtimes.RemoveStale(ctx, prog, t.entry.Workdir, t.entry.OwnerPID)
			err := t.Stop(ctx, t.entry, reason)
			if errors.Is(err, control.ErrUnreachable) {
				prog.Screen.Warn(fmt.Sprintf("session %s cannot be reached; sending SIGTERM to process %d, which holds it", t.entry.Label(), t.entry.OwnerPID))
				err = t.Terminate(ctx, t.entry)
			}
			return err
		}),
	}
}

// interruptLimit is how long an agent may take to respond to an interrupt.
const interruptLimit = 10 * time.Second

func interruptCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:      "interrupt",
		Usage:     "end the running turn",
		ArgsUsage: "ID",
		Description: `Ends the running turn and the tools it started. The session continues with the queued
messages. If no turn is running, interrupt drops the next queued message. If no message
is queued either, it prints a warning and does nothing.

The agent has 10 seconds to respond. If it does not respond, interrupt fails; use
"session stop".`,
		UsageText: cmdline.UsageText(`# end the running turn
bus-agent session interrupt review`,
			"the turn was interrupted, or no turn was running", "the agent did not respond, or the session has ended"),
		BashComplete: completes(prog, control.Entry.Served),
		Action: action(prog, cmdline.Slow, func(ctx context.Context, t target) error {
			interrupted, err := t.Interrupt(ctx, t.entry, interruptLimit)
			if err == nil && !interrupted {
				prog.Screen.Warn("session " + t.entry.Label() + ": no turn is running; nothing was interrupted")
			}
			return err
		}),
	}
}
