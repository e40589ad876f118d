package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"
	"github.com/busdk/bus-agent/internal/commands/runtimes"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/session/control"
)

func sessionStopCommand(prog *cmdline.Program) *urfave.Command {
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
		Flags: []urfave.Flag{cmdline.Option("reason", "write down `TEXT` as the reason", &reason)},
		UsageText: cmdline.UsageText(`# that is all
bus-agent session stop review --reason "all done"`,
			"the session has ended", "it could not be ended"),
		BashComplete: cmdline.Completes(sessionWords(prog, control.Entry.Served)),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			client, entry, err := findSession(prog, call.Args[0])
			if err != nil {
				return err
			}
			defer runtimes.RemoveStale(prog, context.WithoutCancel(ctx), entry)
			text := reason
			if text == "" {
				text = "stopped"
			}
			err = client.Stop(ctx, entry, text)
			if errors.Is(err, control.ErrUnreachable) {
				prog.Screen.Warn(fmt.Sprintf("session %s cannot be asked to end; sending SIGTERM to process %d, which holds it", entry.Label(), entry.OwnerPID))
				err = client.Terminate(ctx, entry)
			}
			return cmdline.CanceledBy(ctx, err)
		}),
	}
}

func sessionResumeCommand(prog *cmdline.Program) *urfave.Command {
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
			promptFlag(&o.Prompt),
			cmdline.List("env", "set a variable for the agent as `NAME=VALUE`; can be repeated", &o.Env),
			o.TrustFlag(),
			o.idleFlag(),
			o.turnTimeoutFlag(),
			o.approvalFlag(),
			o.hookFileFlag(),
			o.hookCommandFlag(),
		},
		UsageText: cmdline.UsageText(`# where were we?
bus-agent session resume review`,
			"the session is running again", "the agent cannot continue it"),
		BashComplete: cmdline.Completes(sessionWords(prog, endedSessions)),
		Action: prog.Action(cmdline.JSON|cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			text, err := messageText(prog, ctx, call.Args[1:], o.Prompt)
			if err != nil {
				return err
			}
			client, entry, err := findSession(prog, call.Args[0])
			if err != nil {
				return err
			}
			opts := control.StartOptions{InitialPrompt: text}
			if err := resumeOptions(prog, o, entry, &opts); err != nil {
				return err
			}
			defer runtimes.RemoveStale(prog, context.WithoutCancel(ctx), entry) // that of the crash
			entry, err = client.Resume(ctx, entry, opts)
			if err != nil {
				return cmdline.CanceledBy(ctx, err)
			}
			return printLabel(prog, ctx, client, entry)
		}),
	}
}

// resumeOptions turns the flags of "session resume" into options.
func resumeOptions(prog *cmdline.Program, o *startOptions, entry control.Entry, opts *control.StartOptions) error {
	if err := run.CheckEnv(o.Env.Value()); err != nil {
		return err
	}
	opts.Env, opts.TrustWorkspace = environMap(o.Env.Value()), o.TrustWorkspace
	if len(o.hookFiles.Value())+len(o.hookCommands.Value()) > 0 {
		opts.Hooks = slices.Clone(entry.Hooks)
	}
	if err := addHooks(prog, o, &opts.Settings); err != nil {
		return err
	}
	return o.times(&opts.Settings)
}
