package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/control"
)

func (inv *invocation) runtimeCommand() *urfave.Command {
	return &urfave.Command{
		Name:  "runtime",
		Usage: "list the runtimes, choose the default one, look for what is wrong",
		Subcommands: []*urfave.Command{
			inv.runtimeListCommand(),
			{
				Name:  "set",
				Usage: "store what is used by default",
				Subcommands: []*urfave.Command{
					inv.runtimeDefaultCommand(),
				},
				UsageText: inv.usageText(exitCodes("the default was stored", "the preferences cannot be written")),
				Action:    inv.group,
			},
			inv.doctorCommand("runtime doctor"),
		},
		UsageText: inv.usageText(exitCodes("the command did what it says")),
		Action:    inv.group,
	}
}

func (inv *invocation) runtimeDefaultCommand() *urfave.Command {
	return &urfave.Command{
		Name:        "default",
		Usage:       "store the runtime that runs when nothing else names one",
		ArgsUsage:   "RUNTIME",
		Description: `The same as "set runtime": writes the preference ` + runner.KeyRuntime + ".",
		UsageText: inv.usageText(exitCodes("the default was stored", "the preferences cannot be written"),
			example{"for example", "bus-agent runtime set default " + runtimeHere},
			example{"back to the built-in default", "bus-agent unset runtime"},
		),
		BashComplete: completes(func(done []string) []string {
			if len(done) > 0 {
				return nil
			}
			return inv.stored.registry.Tokens()
		}),
		Action: inv.action(0, func(ctx context.Context, call call) error {
			if _, _, err := inv.stored.registry.ParseToken(call.args[0]); err != nil {
				return err
			}
			return preferences.SetDefaultRuntime(ctx, call.args[0])
		}),
	}
}

func (inv *invocation) runtimeListCommand() *urfave.Command {
	return &urfave.Command{
		Name:  "list",
		Usage: "list every runtime, whether it can be used, and how it holds sessions",
		Description: `Nothing is started. The default is that of sessions in this directory: what
BUS_AGENT or the preference bus-agent.runtime names, or else .gastown/runtime.json
in this directory or the nearest above it, or else .gastown/runtimes.json in your
home, or else the first one that is available. The two files name a runtime and
nothing else; "run" does not read them.`,
		UsageText: inv.usageText(exitCodes("the list was printed"),
			example{"what is there?", "bus-agent runtime list"},
			example{"the same for a script", "bus-agent runtime list --format json"},
		),
		Action: inv.action(hasJSON, func(ctx context.Context, _ call) error {
			return inv.listRuntimes(ctx)
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
func (inv *invocation) sessionRunner(dir string, warn func(string)) *runner.Runner {
	choices, warnings := control.FindRuntimeOverrides(inv.env.Environ, dir, inv.stored.registry)
	r := inv.runner(warn)
	r.Workdir = dir
	for _, line := range warnings {
		warn(oneWord(line))
	}
	return control.WithRuntimeOverrides(r, choices)
}

func (inv *invocation) listRuntimes(ctx context.Context) error {
	r := inv.sessionRunner(inv.env.Dir, inv.screen.warn)
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
		inv.screen.warn(strings.TrimSuffix(first, "; install or enable one of:"))
	}
	list := make([]listedRuntime, len(all))
	for i, d := range all {
		list[i] = listedRuntime{runtimeState: stateOf(d), TestedVersion: d.Runtime.TestedVersion, Session: sessionOf(d.Runtime)}
		if d.Runtime.ID == selection.Runtime.ID {
			list[i].Default, list[i].DefaultSource = selection.Token, selection.Source
		}
	}
	if inv.global.json() {
		return inv.out.printJSON(list)
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
			mark = fmt.Sprintf(" (default as %s: %s)", list[i].Default, printable(list[i].DefaultSource))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s%s\n", d.Runtime.ID, stateWord(d), held, whereOrWhy(d, lists), mark)
	}
	w.Flush()
	return inv.out.print(b.String())
}

func sessionOf(rt registry.Runtime) *listedSession {
	s := rt.Session
	if s == nil {
		return nil
	}
	return &listedSession{
		Protocol: s.Protocol, Delivery: string(s.Delivers()), Resume: s.Options.Resume, AccountEnv: s.AccountEnv, SessionEnv: s.SessionEnv,
	}
}
