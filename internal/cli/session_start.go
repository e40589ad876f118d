package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/supervisor"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/sessions"
)

// startTime is how long an agent may take until it takes messages, where nothing
// else is asked for.
const startTime = 3 * time.Minute

// startOptions are the flags of "session start" as they were given.
type startOptions struct {
	runOptions
	name, idle, approvalTimeout, bead, mode value
	hookFiles, hookCommands                 values
}

// sharedFlags are those that start has in common with run.
var sharedFlags = []string{
	"agent", "model", "model-reasoning-effort", "model-verbosity", "access", "allow-command", "add-dir", "env", "workdir",
	"prompt", "require-agents-md", "trust-workspace", "require-configured",
	"record", "runs-root", "project", "task", "parent-run",
}

func (o *startOptions) flags(inv *invocation) []*commandFlag {
	var list []*commandFlag
	for _, f := range o.runOptions.flags(inv) {
		if slices.Contains(sharedFlags, f.name) {
			list = append(list, f)
		}
	}
	return append(list,
		option("name", "call the session `NAME`", &o.name),
		option("timeout", "give up when the agent takes no messages after `DURATION` (default: 3m)", &o.timeout),
		o.modeFlag(),
		o.idleFlag(),
		o.approvalFlag(),
		o.hookFileFlag(),
		o.hookCommandFlag(),
		option("bead", "tell hooks that the session is for the piece of work `ID`", &o.bead),
	)
}

func (o *startOptions) idleFlag() *commandFlag {
	return option("idle", "end the session after `DURATION` without a message (default: never)", &o.idle)
}

func (o *startOptions) approvalFlag() *commandFlag {
	return option("approval-timeout", "decline what nobody answers for `DURATION` (default: 5m)", &o.approvalTimeout)
}

func (inv *invocation) sessionStartCommand() *command {
	o := &startOptions{}
	return &command{
		name:      "start",
		purpose:   "start an agent and a session with it",
		arguments: "[PROMPT]",
		max:       1,
		details: `Starts an agent, waits until it takes messages, and prints how the session is
called: its name or, without --name, its ID. PROMPT, or what --prompt names, is the
first message; nothing waits for its answer.

The agent runs until "session stop", its own end, or --idle. Questions for
permission wait for "session approve" and are declined after --approval-timeout.`,
		json:   true,
		passes: true,
		flags:  o.flags(inv),
		examples: []example{
			{"an agent that may only look, called review", "bus-agent session start --agent " + runtimeHere + " --access read --name review"},
		},
		exits: exitCodes("the session is there", "the agent is not installed, or did not start"),
		words: func([]string) []string { return nil },
		slow:  true,
		run: func(ctx context.Context, call call) error {
			settings, err := inv.sessionSettings(ctx, o, call.rest)
			if err != nil {
				return err
			}
			text, err := inv.messageText(ctx, call.args, o.prompt)
			if err != nil {
				return err
			}
			return inv.startSession(ctx, o.name, settings, text)
		},
	}
}

// sessionSettings is what a session is started with, as its supervisor gets it.
type sessionSettings struct {
	Runtime             string                `json:"runtime,omitempty"`
	Workdir             string                `json:"workdir"`
	Model               string                `json:"model,omitempty"`
	Effort              agent.ReasoningEffort `json:"effort,omitempty"`
	Verbosity           agent.Verbosity       `json:"verbosity,omitempty"`
	Access              agent.Access          `json:"access,omitempty"`
	AllowCommands       []string              `json:"allow_commands,omitempty"`
	AddDirs             []string              `json:"add_dirs,omitempty"`
	Args                []string              `json:"args,omitempty"`
	TrustWorkspace      bool                  `json:"trust_workspace,omitempty"`
	RequireInstructions bool                  `json:"require_instructions,omitempty"`
	RequireConfigured   bool                  `json:"require_configured,omitempty"`
	StartTimeout        time.Duration         `json:"start_timeout"`
	Idle                time.Duration         `json:"idle,omitempty"`
	ApprovalTimeout     time.Duration         `json:"approval_timeout,omitempty"`
	Bead                string                `json:"bead,omitempty"`
	Mode                sessions.Mode         `json:"mode,omitempty"`
	// Hooks are told what happens, beside those of the preferences.
	Hooks []sessions.SinkSpec `json:"hooks,omitempty"`
	// Env may hold secrets; it is not stored.
	Env []string `json:"env,omitempty"`
	// Record says how the session is recorded, nil that it is not.
	Record *recordSettings `json:"record,omitempty"`
	// Resume is the runtime's ID of the session to go on with.
	Resume string `json:"resume,omitempty"`
}

// sessionSettings turns the flags into settings.
func (inv *invocation) sessionSettings(ctx context.Context, o *startOptions, rest []string) (sessionSettings, error) {
	req, err := inv.sessionRequest(&o.runOptions)
	if err != nil {
		return sessionSettings{}, err
	}
	s := sessionSettings{
		Runtime: req.Runtime, Workdir: req.Workdir, Model: req.Model, Effort: req.ReasoningEffort, Verbosity: req.Verbosity,
		Access: req.Access, AllowCommands: req.AllowCommands, AddDirs: req.AddDirs, Args: rest,
		TrustWorkspace: req.TrustWorkspace, RequireInstructions: req.RequireInstructions, RequireConfigured: o.requireConfigured,
		StartTimeout: req.Timeout, Env: req.Env,
	}
	if s.Mode, err = o.parseMode(); err != nil {
		return sessionSettings{}, err
	}
	if s.StartTimeout == 0 {
		s.StartTimeout = startTime
	}
	s.Bead = o.bead.text
	if s.Record, err = inv.recordSettings(ctx, &o.recordOptions, inv.screen.warn); err != nil {
		return sessionSettings{}, err
	}
	if err := inv.addHooks(o, &s); err != nil {
		return sessionSettings{}, err
	}
	return s, o.times(&s)
}

// sessionRequest turns the flags that sessions have in common with runs into a
// request.
func (inv *invocation) sessionRequest(o *runOptions) (agent.Request, error) {
	req := agent.Request{
		Runtime: o.agent.text, Workdir: inv.env.Dir, Model: o.model.text, AllowCommands: o.allowCommands.list,
		Env: o.env.list, Resume: o.resume.text, TrustWorkspace: o.trustWorkspace, RequireInstructions: o.requireAgentsMD,
	}
	for _, step := range []func() error{
		o.checkEmpty,
		func() error { return inv.checkRuntime(o) },
		func() error { return o.parseWords(&req) },
		func() error { return o.parseNumbers(&req) },
		func() error { return inv.parsePaths(o, &req) },
		func() error { return settlePaths(&req) },
		func() error { return checkEnv(o.env.list) },
	} {
		if err := step(); err != nil {
			return agent.Request{}, err
		}
	}
	return req, nil
}

// settlePaths makes the paths of a request absolute: the supervisor has another
// current directory, so what is relative would be something else there.
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
func (o *startOptions) times(s *sessionSettings) error {
	for _, f := range []struct {
		name  string
		value value
		to    *time.Duration
	}{{"idle", o.idle, &s.Idle}, {"approval-timeout", o.approvalTimeout, &s.ApprovalTimeout}} {
		if !f.value.set {
			continue
		}
		d, err := runner.ParseTimeout(f.value.text)
		if err != nil {
			return agent.Usagef("--%s: %w", f.name, err)
		}
		*f.to = d
	}
	return nil
}

// startSession starts a session and prints how it is called.
func (inv *invocation) startSession(ctx context.Context, name value, settings sessionSettings, text string) error {
	if name.set && name.text == "" {
		return agent.Usagef("--name is given an empty value; leave it out or name something")
	}
	all, err := inv.sessions()
	if err != nil {
		return err
	}
	stored := settings
	stored.Env = nil
	kept, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	entry, err := all.Create(ctx, supervisor.Entry{
		Name: name.text, CanonicalID: sessions.IdentityOf(settings.Env, "").SessionID,
		Runtime: settings.Runtime, Workdir: settings.Workdir, Settings: kept,
	})
	if err != nil {
		return err
	}
	if err := inv.launch(ctx, all, entry, settings, text); err != nil {
		all.Remove(entry.ID)
		return err
	}
	return inv.printHandle(ctx, all, entry.ID)
}

// launch starts the supervisor of a session and waits until it can be used.
func (inv *invocation) launch(ctx context.Context, all *supervisor.Sessions, entry supervisor.Entry, settings sessionSettings, text string) error {
	if inv.env.Executable == "" {
		return &failure{text: "sessions cannot be started", err: errNoExecutable}
	}
	entry.Workdir = settings.Workdir // what was stored may differ
	input, err := json.Marshal(supervision{Folder: all.Folder, Entry: entry, Settings: settings, Message: text})
	if err != nil {
		return err
	}
	err = all.Launch(ctx, entry, supervisor.Launch{
		Path: inv.env.Executable, Args: []string{program, superviseCommand}, Environ: inv.env.Environ, Input: input,
		Report: inv.launchReport,
	})
	return canceledBy(ctx, err)
}

// launchReport shows what a supervisor says before the session is ready.
func (inv *invocation) launchReport(r supervisor.Report) {
	switch {
	case r.Warning != "":
		inv.screen.warn(r.Warning)
	case r.Runtime != "":
		v := &view{inv: inv, runtime: r.Runtime, model: r.Model}
		v.announce()
	}
}

// printHandle prints how a session is called.
func (inv *invocation) printHandle(ctx context.Context, all *supervisor.Sessions, id string) error {
	entry, err := all.Load(id)
	if err != nil {
		return err
	}
	if !inv.global.json() {
		return inv.out.print(entry.Handle() + "\n")
	}
	status, err := all.Show(ctx, entry)
	if err != nil {
		return err
	}
	return inv.out.printJSON(status)
}
