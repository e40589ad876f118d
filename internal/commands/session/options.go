package session

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
	"github.com/busdk/bus-agent/session/policy"
)

// startTime is how long an agent may take to become ready, unless --timeout says
// otherwise.
const startTime = 3 * time.Minute

// startOptions are the flags of the commands that start an agent.
type startOptions struct {
	run.Options
	start      control.StartOptions // what the flags below fill in directly
	attach     []string             // files of the first message
	policyFile string
}

// flags declares the flags that all sessions have.
func (o *startOptions) flags(prog *cmdline.Program) []urfave.Flag {
	return slices.Concat(o.AgentFlags(prog), o.AccessFlags(prog), o.Record.Flags(), o.turnFlags(), o.hookFlags(prog),
		cmdline.Category("Session",
			cmdline.OneOf("mode", "run the agent in `MODE`: minimal (through its protocol) or tmux (in a terminal) (default: minimal)", &o.start.Mode, session.ModeMinimal, session.ModeTmux),
			cmdline.String("bead", "pass `ID` to hooks as the bead (work item) of the session", &o.start.Bead),
		),
		cmdline.Category("Access",
			cmdline.File("policy", "answer approval requests by the rules in `FILE`, which is not in the workdir or its repository", &o.policyFile),
		),
		cmdline.Category("Limit",
			cmdline.Duration("timeout", "give up when the agent is not ready after `DURATION` (default: 3m)", &o.Timeout),
		),
	)
}

func (o *startOptions) turnFlags() []urfave.Flag {
	return cmdline.Category("Limit",
		cmdline.Duration("turn-timeout", "interrupt each turn that takes longer than `DURATION` (default: no limit)", &o.start.TurnTimeout),
		cmdline.Duration("approval-timeout", "decline approval requests and questions that are not answered for `DURATION` (default: 5m)", &o.start.ApprovalTimeout),
	)
}

func (o *startOptions) idleFlag() []urfave.Flag {
	return cmdline.Category("Limit", cmdline.Duration("idle", "end the session after `DURATION` without a message (default: never)", &o.start.Idle))
}

func (o *startOptions) hookFlags(prog *cmdline.Program) []urfave.Flag {
	add := func(hook control.SinkSpec) error {
		o.start.Hooks = append(o.start.Hooks, hook)
		return hook.Check()
	}
	return cmdline.Category("Hook",
		cmdline.Func("hook-file", "append a line of JSON to `FILE` for each event", func(name string) error {
			return add(control.SinkSpec{File: prog.Env.Abs(name)})
		}).Repeatable(),
		cmdline.Func("hook-command", "run `COMMAND` for each event: a program, or a JSON list of a program and its arguments", func(text string) error {
			command := []string{text}
			if strings.HasPrefix(text, "[") {
				command = nil
				if err := json.Unmarshal([]byte(text), &command); err != nil {
					return fmt.Errorf("%q is not a JSON list of strings: %w", text, err)
				}
			}
			if len(command) > 0 && strings.ContainsRune(command[0], '/') {
				command[0] = prog.Env.Abs(command[0])
			}
			return add(control.SinkSpec{Command: command})
		}).Repeatable(),
	)
}

// settle returns the options for a new session.
func (o *startOptions) settle(ctx context.Context, prog *cmdline.Program, args []string) (control.StartOptions, error) {
	opts, req := o.start, &o.Request
	if err := process.Supported(); err != nil {
		return opts, agent.Usagef("%w", err)
	}
	// The process that holds the session has another current directory.
	workdir, err := filepath.Abs(cmp.Or(req.Workdir, prog.Env.Dir))
	if err != nil {
		return opts, agent.Usagef("workdir %q: %w", prog.Env.Dir, err)
	}
	opts.Workdir, opts.Runtime, opts.Model, opts.Args = workdir, req.Runtime, req.Model, args
	opts.ReasoningEffort, opts.Verbosity = req.ReasoningEffort, req.Verbosity
	opts.UserConfig, opts.AppendSystemPrompt, opts.MCPServers = req.UserConfig, req.AppendSystemPrompt, req.MCPServers
	opts.AllowTools, opts.DenyTools = req.AllowTools, req.DenyTools
	opts.Access, opts.AllowCommands, opts.AddDirs = req.Access, req.AllowCommands, req.AddDirs
	opts.TrustWorkspace, opts.RequireInstructions, opts.RequireConfigured = req.TrustWorkspace, req.RequireInstructions, o.RequireConfigured
	opts.StartTimeout = cmp.Or(req.Timeout, startTime)
	opts.Env = environMap(req.Env)
	if opts.Policy, err = o.policy(ctx, prog, workdir); err != nil {
		return opts, err
	}
	opts.Record, err = o.Record.Settings(ctx, prog, prog.Screen.Warn)
	return opts, err
}

// policy returns the policy of a new session: that of --policy, or else the stored one.
func (o *startOptions) policy(ctx context.Context, prog *cmdline.Program, workdir string) (*policy.Policy, error) {
	if o.policyFile != "" {
		return policy.Load(prog.Env.Abs(o.policyFile), slices.Concat([]string{workdir}, o.AddDirs)...)
	}
	stored, err := control.StoredPolicy(ctx, prog.Stored.Preferences)
	if stored != nil && o.Access == agent.AccessFull {
		prog.Screen.Warn("ignoring preference " + runner.KeyPolicy + ": with full access the agent requests no approval")
		return nil, nil
	}
	return stored, err
}

func environMap(entries []string) map[string]string {
	environ := make(map[string]string, len(entries))
	for _, entry := range entries {
		name, value, _ := strings.Cut(entry, "=")
		environ[name] = value
	}
	return environ
}
