package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/session/control"
)

func (inv *invocation) sessionStopCommand() *urfave.Command {
	var reason string
	return &urfave.Command{
		Name:      "stop",
		Usage:     "end a session",
		ArgsUsage: "ID",
		Description: `Ends the agent and everything it has started, and returns when nothing of it is
left. A running turn is given up, and messages that wait are not delivered. A
session that has ended is left as it is. Of one that has crashed, what lives on is
ended, and it is marked as stopped. One that cannot be asked to end, because its
socket is gone or an older version holds it, is ended by SIGTERM to its process.`,
		Flags:        []urfave.Flag{option("reason", "write down `TEXT` as the reason", &reason)},
		UsageText:    inv.usageText(exitCodes("the session has ended", "it could not be ended"), example{"that is all", `bus-agent session stop review --reason "all done"`}),
		BashComplete: completes(inv.sessionWords(control.Entry.Served)),
		Action: inv.action(slow, func(ctx context.Context, call call) error {
			client, entry, err := inv.findSession(call.args[0])
			if err != nil {
				return err
			}
			defer inv.removeLeft(context.WithoutCancel(ctx), entry)
			text := reason
			if text == "" {
				text = "stopped"
			}
			err = client.Stop(ctx, entry, text)
			if errors.Is(err, control.ErrUnreachable) {
				inv.screen.warn(fmt.Sprintf("session %s cannot be asked to end; sending SIGTERM to process %d, which holds it", entry.Label(), entry.OwnerPID))
				err = client.Terminate(ctx, entry)
			}
			return canceledBy(ctx, err)
		}),
	}
}

func (inv *invocation) sessionResumeCommand() *urfave.Command {
	o := &startOptions{}
	return &urfave.Command{
		Name:      "resume",
		Usage:     "continue a session that has ended",
		ArgsUsage: "ID [PROMPT]",
		Description: `Starts the agent again with what it remembers of a session that has ended or
crashed, under the same name and ID and with the same settings. Variables of --env and
--trust-workspace are not remembered; they are given again. Hooks are added to
those that there are.
PROMPT, or what --prompt names, is the next message.`,
		Flags: []urfave.Flag{
			promptFlag(&o.prompt),
			list("env", "set a variable for the agent as `NAME=VALUE`; can be repeated", &o.env),
			o.trustFlag(),
			o.idleFlag(),
			o.turnTimeoutFlag(),
			o.approvalFlag(),
			o.hookFileFlag(),
			o.hookCommandFlag(),
		},
		UsageText:    inv.usageText(exitCodes("the session is running again", "the agent cannot continue it"), example{"where were we?", "bus-agent session resume review"}),
		BashComplete: completes(inv.sessionWords(endedSessions)),
		Action: inv.action(hasJSON|slow, func(ctx context.Context, call call) error {
			text, err := inv.messageText(ctx, call.args[1:], o.prompt)
			if err != nil {
				return err
			}
			client, entry, err := inv.findSession(call.args[0])
			if err != nil {
				return err
			}
			opts := control.StartOptions{InitialPrompt: text}
			if err := inv.resumeOptions(o, entry, &opts); err != nil {
				return err
			}
			defer inv.removeLeft(context.WithoutCancel(ctx), entry) // that of the crash
			entry, err = client.Resume(ctx, entry, opts)
			if err != nil {
				return canceledBy(ctx, err)
			}
			return inv.printLabel(ctx, client, entry)
		}),
	}
}

// resumeOptions turns the flags of "session resume" into options.
func (inv *invocation) resumeOptions(o *startOptions, entry control.Entry, opts *control.StartOptions) error {
	if err := checkEnv(o.env.Value()); err != nil {
		return err
	}
	opts.Env, opts.TrustWorkspace = environMap(o.env.Value()), o.trustWorkspace
	if len(o.hookFiles.Value())+len(o.hookCommands.Value()) > 0 {
		opts.Hooks = slices.Clone(entry.Hooks)
	}
	if err := inv.addHooks(o, &opts.Settings); err != nil {
		return err
	}
	return o.times(&opts.Settings)
}
