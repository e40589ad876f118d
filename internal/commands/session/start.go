package session

import (
	"context"
	"errors"
	"slices"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"
	"github.com/busdk/bus-agent/internal/commands/runtimes"
	"github.com/busdk/bus-agent/session/control"
)

func startCommand(prog *cmdline.Program) *urfave.Command {
	o := &startOptions{}
	return &urfave.Command{
		Name:      "start",
		Usage:     "start an agent and a session with it",
		ArgsUsage: "[PROMPT] [-- ARGS]",
		Description: `Starts an agent, waits until it is ready, and prints the name of the session or,
without --name, its ID. PROMPT, or the file of --prompt, is the first message. The
command does not wait for the answer.

The agent runs until "session stop", --idle, or until it ends by itself. Approval
requests wait for "session approve" and are declined after --approval-timeout.`,
		Flags: slices.Concat(o.flags(prog), o.idleFlag(),
			cmdline.Category("Session", cmdline.String("name", "`NAME` of the session", &o.start.Name)),
			cmdline.Category("Input", promptFlag(&o.PromptFile), cmdline.AttachFlag(&o.attach)),
		),
		UsageText: cmdline.UsageText(`# an agent that asks before it does more than edit files, in a session named review
bus-agent session start --agent RUNTIME --name review
# its own program in a terminal, for "session attach"
bus-agent session start --agent RUNTIME --mode tmux --name look`,
			"the session was started", "the agent is not installed, or did not start"),
		BashComplete: cmdline.Completes(func([]string) []string { return nil }),
		Action: prog.Action(cmdline.JSON|cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			opts, err := o.settle(ctx, prog, call.Rest)
			if err != nil {
				return err
			}
			first, err := readFirst(ctx, prog, call.Args, o.PromptFile, o.attach)
			if err != nil {
				return err
			}
			opts.InitialPrompt, opts.InitialAttachments = first.Text, first.Attachments
			client, err := newClient(prog)
			if err != nil {
				return err
			}
			if prog.Env.Executable == "" {
				return errors.New("cannot start sessions: the path of the program is unknown")
			}
			check := func(m *control.Manager) error { return m.Check(ctx, opts) }
			if err := checked(ctx, prog, opts.Settings, check); err != nil {
				return cmdline.CanceledBy(ctx, err)
			}
			entry, err := client.Start(ctx, opts)
			if err != nil {
				return cmdline.CanceledBy(ctx, err)
			}
			return printLabel(ctx, prog, client, entry)
		}),
	}
}

// checked refuses what check refuses before a process is started for the session. That
// process reports the warnings, unless there is none.
func checked(ctx context.Context, prog *cmdline.Program, settings control.Settings, check func(*control.Manager) error) error {
	var warnings []string
	manager := newManager(ctx, prog, settings, func(line string) {
		if !slices.Contains(warnings, line) {
			warnings = append(warnings, line)
		}
	})
	err := check(manager)
	if err != nil {
		for _, line := range warnings {
			prog.Screen.Warn(line)
		}
	}
	return err
}

func resumeCommand(prog *cmdline.Program) *urfave.Command {
	o := &startOptions{}
	return &urfave.Command{
		Name:      "resume",
		Usage:     "continue a session that has ended",
		ArgsUsage: "ID [PROMPT]",
		Description: `Restarts the agent of a session that has ended or crashed. The session keeps its
conversation, settings, name and ID. Give --env and --trust-workspace again, because
they are not stored. Hook flags add to the hooks of the session. PROMPT, or the file of
--prompt, is the next message.`,
		Flags: slices.Concat(o.turnFlags(), o.idleFlag(), o.hookFlags(prog),
			cmdline.Category("Input", promptFlag(&o.PromptFile), cmdline.AttachFlag(&o.attach)),
			cmdline.Category("Access", run.EnvFlag(&o.Env), run.TrustFlag(&o.TrustWorkspace)),
		),
		UsageText: cmdline.UsageText(`# continue where it ended
bus-agent session resume review`,
			"the session is running again", "the agent cannot continue the session"),
		BashComplete: completes(prog, ended),
		Action: action(prog, cmdline.JSON|cmdline.Slow, func(ctx context.Context, t target) (err error) {
			opts := control.ResumeOptions{Settings: o.start.Settings}
			first, err := readFirst(ctx, prog, t.args, o.PromptFile, o.attach)
			if err != nil {
				return err
			}
			opts.Prompt, opts.Attachments = first.Text, first.Attachments
			opts.Env, opts.TrustWorkspace = environMap(o.Env), o.TrustWorkspace
			if len(opts.Hooks) > 0 {
				opts.Hooks = slices.Concat(t.entry.Hooks, opts.Hooks)
			}
			check := func(m *control.Manager) error { return m.CheckResume(ctx, t.entry, opts) }
			if err := checked(ctx, prog, t.entry.Settings, check); err != nil {
				return err
			}
			defer runtimes.RemoveStale(ctx, prog, t.entry.Workdir, t.entry.OwnerPID)
			entry, err := t.Resume(ctx, t.entry, opts)
			if err != nil {
				return err
			}
			return printLabel(ctx, prog, t.Client, entry)
		}),
	}
}

// showReport returns a function that shows what a session reports before it is ready.
func showReport(prog *cmdline.Program) func(control.Report) {
	return func(r control.Report) {
		switch {
		case r.Warning != "":
			prog.Screen.Warn(r.Warning)
		case r.Runtime != "":
			run.Announce(prog, agent.Start{Runtime: r.Runtime, Model: r.Model, RunID: r.RunID})
		case r.RunID != "":
			run.AnnounceRecord(prog, r.RunID)
		}
	}
}

// printLabel prints the name or ID of a session, or its status in JSON.
func printLabel(ctx context.Context, prog *cmdline.Program, client *control.Client, entry control.Entry) error {
	if !prog.Global.JSON() {
		return prog.Out.Print(entry.Label() + "\n")
	}
	status, err := client.Show(ctx, entry)
	if err != nil {
		return err
	}
	return prog.Out.PrintJSON(status)
}
