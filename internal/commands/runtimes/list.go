package runtimes

import (
	"context"
	"fmt"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/control"
)

// Command is "runtime".
func Command(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:  "runtime",
		Usage: "list the runtimes, choose the default, check them",
		Subcommands: []*urfave.Command{
			listCommand(prog),
			{
				Name:        "set",
				Usage:       "store the default runtime",
				Subcommands: []*urfave.Command{defaultCommand(prog)},
				UsageText:   cmdline.UsageText("", "the default was stored", "the preferences cannot be written"),
				Action:      prog.Group,
			},
			DoctorCommand(prog),
		},
		UsageText: cmdline.UsageText("", "the command succeeded"),
		Action:    prog.Group,
	}
}

func defaultCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:        "default",
		Usage:       "store the runtime to use when nothing else names one",
		ArgsUsage:   "RUNTIME",
		Description: `Writes the preference ` + runner.KeyRuntime + `, as "set runtime" does.`,
		UsageText: cmdline.UsageText(`# store a default
bus-agent runtime set default RUNTIME
# return to the built-in default
bus-agent unset runtime`,
			"the default was stored", "the preferences cannot be written"),
		BashComplete: cmdline.CompletesFirst(prog.Stored.Registry.Tokens),
		Action: prog.Action(0, func(ctx context.Context, call cmdline.Call) error {
			if err := prog.CheckRuntime(call.Args[0]); err != nil {
				return err
			}
			return preferences.SetDefaultRuntime(ctx, call.Args[0])
		}),
	}
}

func listCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:  "list",
		Usage: "list the runtimes, whether each can be used, and how it runs sessions",
		Description: `List starts no program. It marks the default runtime of sessions in this directory, which
is the first of these:

  1. BUS_AGENT
  2. .gastown/runtime.json in this directory or the nearest directory above that has one
  3. the preference bus-agent.runtime
  4. .gastown/runtimes.json in your home
  5. the first available runtime

It also marks the runtimes that the others of these name. "run" does not read the two
files.`,
		UsageText: cmdline.UsageText(`# list the runtimes
bus-agent runtime list
# the same for a script
bus-agent runtime list --format json`,
			"the list was printed"),
		Action: prog.Action(cmdline.JSON, func(ctx context.Context, _ cmdline.Call) error {
			return listRuntimes(ctx, prog)
		}),
	}
}

// listedRuntime is one runtime of the list in JSON.
type listedRuntime struct {
	runtimeState
	TestedVersion string         `json:"tested_version,omitempty"`
	Session       *listedSession `json:"session"`
	// Overridden are the sources that name it and are not used.
	Overridden []overriddenSource `json:"overridden,omitempty"`
}

// overriddenSource is a source of the default runtime that another one overrides.
type overriddenSource struct {
	Runtime string `json:"runtime"` // token
	Source  string `json:"source"`
}

// listedSession is how a runtime holds sessions.
type listedSession struct {
	Protocol   string `json:"protocol"`
	Delivery   string `json:"delivery"`
	Resume     bool   `json:"resume"`
	AccountEnv string `json:"account_env,omitempty"`
	SessionEnv string `json:"session_env,omitempty"`
}

// SessionRunner returns a runner that selects as sessions do in a directory.
func SessionRunner(prog *cmdline.Program, dir string, warn func(string)) *runner.Runner {
	overrides, warnings := control.FindRuntimeOverrides(prog.Env.Environ, dir, prog.Stored.Registry)
	r := prog.Runner(warn)
	r.Workdir = dir
	for _, line := range warnings {
		warn(cmdline.OneWord(line))
	}
	return control.WithRuntimeOverrides(r, overrides)
}

func listRuntimes(ctx context.Context, prog *cmdline.Program) error {
	warned := map[string]bool{}
	warn := func(line string) {
		if !warned[line] {
			warned[line] = true
			prog.Screen.Warn(line)
		}
	}
	r := SessionRunner(prog, prog.Env.Dir, warn)
	all, listErr := r.Detect(ctx)
	if listErr != nil {
		warn(listErr.Error())
	}
	selection, err := r.Resolve(ctx, "")
	switch {
	case agent.KindOf(err) == "usage":
		warn(err.Error())
	case err != nil:
		warn(cmdline.NoRuntime(err))
	}
	named := r.NamedRuntimes(ctx)
	list := make([]listedRuntime, len(all))
	table := prog.Table("RUNTIME", "STATE", "SESSIONS", "PATH OR REASON")
	for i, d := range all {
		item := listedRuntime{runtimeState: stateOf(d), TestedVersion: d.Runtime.TestedVersion, Session: sessionOf(d.Runtime)}
		held, where := "no sessions", whereOrWhy(d)
		if item.Session != nil {
			held = item.Session.Protocol
		}
		if err == nil && d.Runtime.ID == selection.Runtime.ID {
			item.Default, item.DefaultSource = selection.Token, selection.Source
			where += fmt.Sprintf(" (default as %s: %s)", item.Default, cmdline.Printable(item.DefaultSource))
		}
		for _, n := range named {
			if n.Err == nil && baseID(n.Value) == d.Runtime.ID && n.Source != selection.Source {
				item.Overridden = append(item.Overridden, overriddenSource{n.Value, n.Source})
				where += fmt.Sprintf(" (not the default as %s: %s is overridden)", cmdline.Printable(n.Value), cmdline.Printable(n.Source))
			}
		}
		list[i] = item
		table.Row(d.Runtime.ID, stateWord(d), held, where)
	}
	return prog.Out.Report(list, table.String())
}

func sessionOf(rt registry.Runtime) *listedSession {
	s := rt.Session
	if s == nil {
		return nil
	}
	return &listedSession{
		Protocol: s.Protocol, Delivery: string(s.Delivers()), Resume: s.Options.Resume, AccountEnv: rt.Home.Env, SessionEnv: s.SessionEnv,
	}
}
