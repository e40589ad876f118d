// Package mcp has the command that lets an agent use other agents.
package mcp

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/delegation"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/runner"
)

// options are the flags of mcp.
type options struct {
	settings delegation.Settings
	record   run.RecordOptions
}

// Command is "mcp".
func Command(prog *cmdline.Program) *urfave.Command {
	o := &options{}
	return &urfave.Command{
		Name:  "mcp",
		Usage: "let an agent run other agents, as an MCP server",
		Description: `Serves the Model Context Protocol on standard input and output, so that an agent can
list the runtimes, run agents, hold sessions with them and read the records of runs in
the directory. Add it to the MCP servers of a CLI, with
"bus-agent" as the command and "mcp" as its argument.

The server ends when its standard input does, and with it all agents it has started.
It needs the program bus-agent-mcp, next to bus-agent or in PATH.

No agent gets more access than --access, or works outside --workdir. Agents that it
starts cannot start others through it, unless --max-depth allows it; what they start has
their access at most.`,
		Flags: o.flags(prog),
		UsageText: cmdline.UsageText(`# agents that cannot change anything
bus-agent mcp
# agents that can edit in the directory, three at most
bus-agent mcp --access write --max-runs 3`,
			"the client has ended the server",
			"the server was stopped, or cannot read or write its streams"),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			if prog.Env.ServeMCP == nil {
				return replace(prog)
			}
			return o.serve(ctx, prog)
		}),
	}
}

func (o *options) flags(prog *cmdline.Program) []urfave.Flag {
	s := &o.settings
	return slices.Concat(
		cmdline.Category("Access",
			cmdline.OneOf("access", "give agents `ACCESS` at most: read (no changes), write (edit in the workdir), full (no limits) (default: read)", &s.Access, agent.Accesses()...),
			cmdline.Switch("approve", "let the client accept approval requests of agents in sessions (default: only its user can)", &s.Approve),
			prog.Dir("workdir", "let agents work in `DIR` and below (default: the current directory)", &s.Workdir),
		),
		cmdline.Category("Limit",
			cmdline.Number("max-depth", "let there be `N` levels of agents below the client (default: 1)", 1, &s.Depth),
			cmdline.Number("max-runs", "allow `N` runs and messages (default: 100)", 1, &s.Runs),
			cmdline.Number("max-concurrent", "run `N` agents at a time (default: 4)", 1, &s.Concurrent),
			cmdline.Duration("timeout", "stop an agent after `DURATION`, such as 90s or 1h30m (default: 30m)", &s.Timeout),
			cmdline.Duration("total-timeout", "stop agents when their times add up to `DURATION` (default: 8h)", &s.TotalTimeout),
			cmdline.Number("max-output", "return `N` bytes of an answer at most (default: 65536)", 1024, &s.Output),
		),
		o.record.Flags(),
	)
}

// serve serves until the client or ctx ends.
func (o *options) serve(ctx context.Context, prog *cmdline.Program) (err error) {
	o.settings.Runner = prog.Runner(prog.Screen.Warn)
	if o.settings.Record, err = o.record.Settings(ctx, prog, prog.Screen.Warn); err != nil {
		return err
	}
	// Without a folder for records, agents run all the same.
	if o.settings.RunsRoot, err = prog.RunsRoot(o.record.Root()); errors.Is(err, agent.ErrUsage) {
		return err
	}
	if o.settings.Workdir == "" {
		o.settings.Workdir = prog.Env.Dir
	}
	return prog.Env.ServeMCP(ctx, o.settings, prog.Env.Stdin, prog.Env.Stdout)
}

// Program is the name of the program that serves.
const Program = "bus-agent-mcp"

// replace replaces this program by the one that serves. It returns only if that fails.
func replace(prog *cmdline.Program) error {
	path, err := find(prog)
	if err != nil {
		return err
	}
	args := slices.Clone(prog.Env.Args)
	if i := slices.Index(args, "mcp"); i >= 0 { // the program is the command
		args = slices.Delete(args, i, i+1)
	}
	return process.Exec(path, args, prog.Env.Environ)
}

// find returns the path of the program that serves: next to this one, or else in PATH.
func find(prog *cmdline.Program) (string, error) {
	if own := prog.Env.Executable; own != "" {
		for _, file := range []string{own, realPath(own)} {
			if path, err := process.LookPath(filepath.Join(filepath.Dir(file), Program), ""); err == nil {
				return path, nil
			}
		}
	}
	search, _ := agent.LookupEnv(runner.CleanPath(prog.Env.Environ, prog.Env.Dir, false), "PATH")
	path, err := process.LookPath(Program, search)
	if errors.Is(err, fs.ErrNotExist) {
		return "", agent.Usagef("%s is not installed: it is neither next to bus-agent nor in PATH outside the repository; "+
			"install it by \"make install\" in bus-agent's repository", Program)
	}
	return path, err
}

// realPath returns path without links, or as it is.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
