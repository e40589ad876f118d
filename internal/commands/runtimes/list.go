package runtimes

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/control"
)

func Command(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:  "runtime",
		Usage: "list the runtimes, choose the default one, look for what is wrong",
		Subcommands: []*urfave.Command{
			runtimeListCommand(prog),
			{
				Name:  "set",
				Usage: "store what is used by default",
				Subcommands: []*urfave.Command{
					runtimeDefaultCommand(prog),
				},
				UsageText: cmdline.UsageText("",
					"the default was stored", "the preferences cannot be written"),
				Action: prog.Group,
			},
			DoctorCommand(prog),
		},
		UsageText: cmdline.UsageText("",
			"the command succeeded"),
		Action: prog.Group,
	}
}

func runtimeDefaultCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:        "default",
		Usage:       "store the runtime that runs when nothing else names one",
		ArgsUsage:   "RUNTIME",
		Description: `The same as "set runtime": writes the preference ` + runner.KeyRuntime + ".",
		UsageText: cmdline.UsageText(`# for example
bus-agent runtime set default RUNTIME
# back to the built-in default
bus-agent unset runtime`,
			"the default was stored", "the preferences cannot be written"),
		BashComplete: cmdline.Completes(func(done []string) []string {
			if len(done) > 0 {
				return nil
			}
			return prog.Stored.Registry.Tokens()
		}),
		Action: prog.Action(0, func(ctx context.Context, call cmdline.Call) error {
			if _, _, err := prog.Stored.Registry.ParseToken(call.Args[0]); err != nil {
				return err
			}
			return preferences.SetDefaultRuntime(ctx, call.Args[0])
		}),
	}
}

func runtimeListCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:  "list",
		Usage: "list every runtime, whether it can be used, and how it holds sessions",
		Description: `Nothing is started. The default is that of sessions in this directory: what
BUS_AGENT or the preference bus-agent.runtime names, or else .gastown/runtime.json
in this directory or the nearest above it, or else .gastown/runtimes.json in your
home, or else the first one that is available. The two files name a runtime and
nothing else; "run" does not read them.`,
		UsageText: cmdline.UsageText(`# what is there?
bus-agent runtime list
# the same for a script
bus-agent runtime list --format json`,
			"the list was printed"),
		Action: prog.Action(cmdline.JSON, func(ctx context.Context, _ cmdline.Call) error {
			return listRuntimes(prog, ctx)
		}),
	}
}

// listedRuntime is one runtime of the list in JSON.
type listedRuntime struct {
	runtimeState
	TestedVersion string `json:"tested_version,omitempty"`
	// Default is the token it is the default by, empty where it is not.
	Default       string         `json:"default,omitempty"`
	DefaultSource string         `json:"default_source,omitempty"`
	Session       *listedSession `json:"session"`
}

// listedSession is how a runtime holds sessions.
type listedSession struct {
	Protocol   string `json:"protocol"`
	Delivery   string `json:"delivery"`
	Resume     bool   `json:"resume"`
	AccountEnv string `json:"account_env,omitempty"`
	SessionEnv string `json:"session_env,omitempty"`
}

// sessionRunner returns a runner that selects as sessions do in a directory.
func SessionRunner(prog *cmdline.Program, dir string, warn func(string)) *runner.Runner {
	choices, warnings := control.FindRuntimeOverrides(prog.Env.Environ, dir, prog.Stored.Registry)
	r := prog.Runner(warn)
	r.Workdir = dir
	for _, line := range warnings {
		warn(cmdline.OneWord(line))
	}
	return control.WithRuntimeOverrides(r, choices)
}

func listRuntimes(prog *cmdline.Program, ctx context.Context) error {
	r := SessionRunner(prog, prog.Env.Dir, prog.Screen.Warn)
	all, err := r.Detect(ctx)
	if err != nil {
		return err
	}
	selection, err := r.Resolve(ctx, "")
	if agent.KindOf(err) == "usage" {
		return err
	}
	if err != nil && selection.Token == "" {
		first, _, _ := strings.Cut(err.Error(), "\n")
		prog.Screen.Warn(strings.TrimSuffix(first, "; install or enable one of:"))
	}
	list := make([]listedRuntime, len(all))
	for i, d := range all {
		list[i] = listedRuntime{runtimeState: stateOf(d), TestedVersion: d.Runtime.TestedVersion, Session: sessionOf(d.Runtime)}
		if d.Runtime.ID == selection.Runtime.ID {
			list[i].Default, list[i].DefaultSource = selection.Token, selection.Source
		}
	}
	if prog.Global.JSON() {
		return prog.Out.PrintJSON(list)
	}
	lists, err := r.Lists(ctx)
	if err != nil {
		return err
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, d := range all {
		held := "no sessions"
		if s := list[i].Session; s != nil {
			held = s.Protocol
		}
		mark := ""
		if list[i].Default != "" {
			mark = fmt.Sprintf(" (default as %s: %s)", list[i].Default, cmdline.Printable(list[i].DefaultSource))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s%s\n", d.Runtime.ID, stateWord(d), held, whereOrWhy(d, lists), mark)
	}
	w.Flush()
	return prog.Out.Print(b.String())
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
