package session

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/control"
)

// startTime is how long an agent may take until it takes messages, where nothing
// else is asked for.
const startTime = 3 * time.Minute

// startOptions are the flags of "session start" as they were given.
type startOptions struct {
	run.Options
	name, idle, turnTimeout, approvalTimeout, bead, mode string
	hookFiles, hookCommands                              urfave.StringSlice
}

// sharedFlags are those that start has in common with run.
var sharedFlags = []string{
	"agent", "model", "model-reasoning-effort", "model-verbosity", "access", "allow-command", "add-dir", "env", "workdir",
	"prompt", "require-agents-md", "trust-workspace", "require-configured",
	"record", "runs-root", "project", "task", "parent-run",
}

func (o *startOptions) flags(prog *cmdline.Program) []urfave.Flag {
	var list []urfave.Flag
	for _, f := range o.Options.Flags(prog) {
		if slices.Contains(sharedFlags, f.Names()[0]) {
			list = append(list, f)
		}
	}
	return append(list,
		cmdline.Option("name", "call the session `NAME`", &o.name),
		cmdline.Option("timeout", "give up when the agent takes no messages after `DURATION` (default: 3m)", &o.Timeout),
		o.modeFlag(),
		o.idleFlag(),
		o.turnTimeoutFlag(),
		o.approvalFlag(),
		o.hookFileFlag(),
		o.hookCommandFlag(),
		cmdline.Option("bead", "tell hooks that the session is for the piece of work `ID`", &o.bead),
	)
}

func (o *startOptions) idleFlag() urfave.Flag {
	return cmdline.Option("idle", "end the session after `DURATION` without a message (default: never)", &o.idle)
}

func (o *startOptions) turnTimeoutFlag() urfave.Flag {
	return cmdline.Option("turn-timeout", "interrupt each turn that takes longer than `DURATION` (default: no limit)", &o.turnTimeout)
}

func (o *startOptions) approvalFlag() urfave.Flag {
	return cmdline.Option("approval-timeout", "decline approval requests that are not answered for `DURATION` (default: 5m)", &o.approvalTimeout)
}

func sessionStartCommand(prog *cmdline.Program) *urfave.Command {
	o := &startOptions{}
	return &urfave.Command{
		Name:      "start",
		Usage:     "start an agent and a session with it",
		ArgsUsage: "[PROMPT] [-- ARGS]",
		Description: `Starts an agent, waits until it takes messages, and prints how the session is
called: its name or, without --name, its ID. PROMPT, or what --prompt names, is the
first message; nothing waits for its answer.

The agent runs until "session stop", its own end, or --idle. Questions for
permission wait for "session approve" and are declined after --approval-timeout.`,
		Flags: o.flags(prog),
		UsageText: cmdline.UsageText(`# an agent that may only look, called review
bus-agent session start --agent RUNTIME --access read --name review`,
			"the session is there", "the agent is not installed, or did not start"),
		BashComplete: cmdline.Completes(func([]string) []string { return nil }),
		Action: prog.Action(cmdline.JSON|cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			opts, err := sessionOptions(prog, ctx, o, call.Rest)
			if err != nil {
				return err
			}
			if opts.InitialPrompt, err = messageText(prog, ctx, call.Args, o.Prompt); err != nil {
				return err
			}
			return startSession(prog, ctx, o.name, opts)
		}),
	}
}

// sessionOptions turns the flags into options.
func sessionOptions(prog *cmdline.Program, ctx context.Context, o *startOptions, rest []string) (control.StartOptions, error) {
	req, err := sessionRequest(prog, &o.Options)
	if err != nil {
		return control.StartOptions{}, err
	}
	opts := control.StartOptions{Env: environMap(req.Env), Settings: control.Settings{
		Runtime: req.Runtime, WorkDir: req.Workdir, Model: req.Model, ReasoningEffort: req.ReasoningEffort, Verbosity: req.Verbosity,
		Access: req.Access, AllowCommands: req.AllowCommands, AddDirs: req.AddDirs, Args: rest,
		TrustWorkspace: req.TrustWorkspace, RequireInstructions: req.RequireInstructions, RequireConfigured: o.RequireConfigured,
		StartTimeout: cmp.Or(req.Timeout, startTime), Bead: o.bead,
	}}
	if opts.Mode, err = o.parseMode(); err != nil {
		return opts, err
	}
	if opts.Record, err = run.RecordSettings(prog, ctx, &o.RecordOptions, prog.Screen.Warn); err != nil {
		return opts, err
	}
	if err := addHooks(prog, o, &opts.Settings); err != nil {
		return opts, err
	}
	return opts, o.times(&opts.Settings)
}

// environMap returns the variables of a list that was checked.
func environMap(list []string) map[string]string {
	environ := make(map[string]string, len(list))
	for _, entry := range list {
		name, value, _ := strings.Cut(entry, "=")
		environ[name] = value
	}
	return environ
}

// sessionRequest turns the flags that sessions have in common with runs into a
// request.
func sessionRequest(prog *cmdline.Program, o *run.Options) (agent.Request, error) {
	req := agent.Request{
		Runtime: o.Agent, Workdir: prog.Env.Dir, Model: o.Model, AllowCommands: o.AllowCommands.Value(),
		Env: o.Env.Value(), Resume: o.Resume, TrustWorkspace: o.TrustWorkspace, RequireInstructions: o.RequireAgentsMD,
	}
	for _, step := range []func() error{
		o.CheckAlone,
		func() error { return run.CheckRuntime(prog, o) },
		func() error { return o.ParseWords(&req) },
		func() error { return o.ParseNumbers(&req) },
		func() error { return run.ParsePaths(prog, o, &req) },
		func() error { return settlePaths(&req) },
		func() error { return run.CheckEnv(o.Env.Value()) },
	} {
		if err := step(); err != nil {
			return agent.Request{}, err
		}
	}
	return req, nil
}

// settlePaths makes the paths of a request absolute: the process that holds the
// session has another current directory, so what is relative would be something else there.
func settlePaths(req *agent.Request) error {
	workdir, err := filepath.Abs(req.Workdir)
	if err != nil {
		return agent.Usagef("workdir %q: %w", req.Workdir, err)
	}
	req.Workdir = workdir
	for i, dir := range req.AddDirs {
		if req.AddDirs[i], err = filepath.Abs(dir); err != nil {
			return agent.Usagef("added directory %q: %w", dir, err)
		}
	}
	return nil
}

// times fills in how long things may take.
func (o *startOptions) times(s *control.Settings) error {
	return errors.Join(parseDuration("idle", o.idle, &s.Idle), parseDuration("turn-timeout", o.turnTimeout, &s.TurnTimeout),
		parseDuration("approval-timeout", o.approvalTimeout, &s.ApprovalTimeout))
}

// parseDuration parses the value of a flag where it was given.
func parseDuration(flag string, v string, to *time.Duration) error {
	if v == "" {
		return nil
	}
	d, err := runner.ParseTimeout(v)
	if err != nil {
		return agent.Usagef("--%s: %w", flag, err)
	}
	*to = d
	return nil
}

// startSession starts a session and prints how it is called.
func startSession(prog *cmdline.Program, ctx context.Context, name string, opts control.StartOptions) error {
	opts.Name = name
	client, err := sessions(prog)
	if err != nil {
		return err
	}
	if prog.Env.Executable == "" {
		return &cmdline.Failure{Text: "sessions cannot be started", Err: errNoExecutable}
	}
	entry, err := client.Start(ctx, opts)
	if err != nil {
		return cmdline.CanceledBy(ctx, err)
	}
	return printLabel(prog, ctx, client, entry)
}

var errNoExecutable = errors.New("the program does not know its own file")

// showReport returns a function that shows what a session reports before it is ready.
func showReport(prog *cmdline.Program) func(control.Report) {
	return func(r control.Report) {
		switch {
		case r.Warning != "":
			prog.Screen.Warn(r.Warning)
		case r.Runtime != "":
			v := &run.View{Prog: prog, Runtime: r.Runtime, Model: r.Model}
			v.Announce()
		}
	}
}

// printLabel prints how a session is called.
func printLabel(prog *cmdline.Program, ctx context.Context, client *control.Client, entry control.Entry) error {
	if !prog.Global.JSON() {
		return prog.Out.Print(entry.Label() + "\n")
	}
	status, err := client.Show(ctx, entry)
	if err != nil {
		return err
	}
	return prog.Out.PrintJSON(status)
}
