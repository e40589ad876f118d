package runtimes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/runner"
)

// DetectCommand is "detect".
func DetectCommand(prog *cmdline.Program) *urfave.Command {
	var first bool
	return &urfave.Command{
		Name:  "detect",
		Usage: "list the runtimes that are available here",
		Description: `Prints the ID of each available runtime, one a line. "run" uses the first one unless
--agent, BUS_AGENT or a preference names another. A runtime is available if its
executable is in PATH and it is not disabled. The last ones can be runtimes that "run"
never uses unless they are named. Detect starts no program.

With --verbose, detect prints a table of all registered runtimes instead: the version,
the one with which verify last checked it, signs of a login, what makes it the default,
and why it is not available. It then starts each available executable for its version.
Agents that cannot be used come last, with the reason.`,
		Flags: []urfave.Flag{cmdline.Switch("first,1", "print only the first available runtime; fail if none is available", &first)},
		UsageText: cmdline.UsageText(`# which runtimes can be used here?
bus-agent detect
# why is one missing?
bus-agent detect -v
# the default, for a script
agent=$(bus-agent detect --first)`,
			"the list was printed; it may be empty", "with --first, no runtime is available"),
		Action: prog.Action(cmdline.JSON|cmdline.Slow, func(ctx context.Context, _ cmdline.Call) error {
			return detect(ctx, prog, first)
		}),
	}
}

// runtimeState is one runtime in JSON.
type runtimeState struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Variants   []string `json:"variants,omitempty"`
	Available  bool     `json:"available"`
	Disabled   bool     `json:"disabled"`
	Path       string   `json:"path,omitempty"`
	Problem    string   `json:"problem,omitempty"`
	InstallURL string   `json:"install_url,omitempty"`

	// Default is the token that makes it the default; empty if it is not the default.
	Default       string `json:"default,omitempty"`
	DefaultSource string `json:"default_source,omitempty"`
	// Version, Verified and Login are what detect --verbose finds out. Verified is the
	// version with which the promises of bus-agent were checked.
	Version  string `json:"version,omitempty"`
	Verified string `json:"verified,omitempty"`
	Login    string `json:"login,omitempty"`
}

func detect(ctx context.Context, prog *cmdline.Program, first bool) error {
	r := prog.Runner(prog.Screen.Warn)
	all, err := r.Detect(ctx)
	if err != nil {
		return err
	}
	var text strings.Builder
	states := []runtimeState{}
	for _, d := range all {
		if !d.Available() || first && !d.Automatic() {
			continue
		}
		text.WriteString(d.Runtime.ID + "\n")
		if states = append(states, stateOf(d)); first {
			return prog.Out.Report(states[0], text.String())
		}
	}
	switch {
	case first:
		return noneAvailable(ctx, r)
	case prog.Global.Verbose > 0:
		return printDetected(ctx, prog, r, all)
	case len(states) == 0:
		prog.Screen.Warn(noneAvailable(ctx, r).Error())
	}
	return prog.Out.Report(states, text.String())
}

func stateOf(d runner.Detected) runtimeState {
	s := runtimeState{
		ID: d.Runtime.ID, Name: d.Runtime.Name, Variants: d.Runtime.Variants,
		Available: d.Available(), Disabled: d.Disabled != "", Path: d.Path, InstallURL: d.Runtime.InstallURL,
	}
	if d.Problem != nil {
		s.Problem = d.Problem.Error()
	}
	return s
}

// printDetected prints a table of all runtimes, and shows the lists that order and
// filter it.
func printDetected(ctx context.Context, prog *cmdline.Program, r *runner.Runner, all []runner.Detected) error {
	quiet := *r
	quiet.Warn = func(string) {} // Detect has warned
	selection, err := quiet.Resolve(ctx, "")
	if err != nil {
		prog.Screen.Warn(cmdline.NoRuntime(err))
	}
	states := make([]runtimeState, len(all))
	var versions sync.WaitGroup
	for i, d := range all {
		states[i] = stateOf(d)
		s := &states[i]
		_, s.Login = loginOf(prog, d.Runtime)
		s.Verified = recordOf(prog, d.Runtime.ID).Version
		if err == nil && d.Runtime.ID == selection.Runtime.ID {
			s.Default, s.DefaultSource = selection.Token, selection.Source
		}
		if d.Available() {
			versions.Go(func() {
				var err error
				if s.Version, err = versionOf(ctx, prog, d, prog.Env.Dir); err != nil && !errors.Is(err, runner.ErrNoVersion) {
					s.Problem = err.Error()
				}
			})
		}
	}
	versions.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	var table cmdline.Table
	table.Row("RUNTIME", "VERSION", "VERIFIED", "LOGIN", "DEFAULT", "WHY NOT")
	for i, d := range all {
		s, chosen, why := &states[i], "-", cmp.Or(states[i].Problem, "-")
		if s.Default != "" {
			chosen = s.Default + " (" + s.DefaultSource + ")"
		}
		if !d.Available() {
			why = whereOrWhy(d)
		}
		table.Row(s.ID, cmdline.OneWord(cmp.Or(s.Version, "-")), cmp.Or(s.Verified, "unverified"), cmdline.Printable(s.Login), cmdline.Printable(chosen), cmdline.OneWord(why))
	}
	for _, id := range prog.Stored.Registry.AllRefused() {
		reason := prog.Stored.Registry.Refused(id).Error()
		states = append(states, runtimeState{ID: id, Name: id, Problem: reason})
		table.Row(id, "-", "unverified", "-", "-", cmdline.OneWord(reason))
	}
	lists := quiet.Lists(ctx)
	for _, list := range []struct {
		name    string
		setting runner.Setting[[]string]
	}{{"order", lists.Order}, {"enable", lists.Enable}, {"disable", lists.Disable}} {
		if list.setting.Source != "" {
			prog.Screen.Plain(fmt.Sprintf("%s: %s (%s)\n", list.name, strings.Join(list.setting.Value, ", "), list.setting.Source))
		}
	}
	return prog.Out.Report(states, table.String())
}

func stateWord(d runner.Detected) string {
	switch {
	case d.Available():
		return "available"
	case d.Disabled != "":
		return "disabled"
	case d.Problem != nil:
		return "refused"
	}
	return "not found"
}

// whereOrWhy returns the path of a runtime, or why it is not available.
func whereOrWhy(d runner.Detected) string {
	switch {
	case d.Disabled != "" && d.Path != "":
		return cmdline.Printable(d.Path) + " (" + d.Disabled + ")"
	case d.Disabled != "":
		return d.Disabled
	case d.Path != "":
		return cmdline.Printable(d.Path)
	case d.Problem != nil:
		return fmt.Sprintf("%s; or get it at %s", cmdline.Printable(d.Problem.Error()), d.Runtime.InstallURL)
	}
	return fmt.Sprintf("no %s in PATH; get it at %s", strings.Join(d.Runtime.Executables, " or "), d.Runtime.InstallURL)
}

// noneAvailable returns the error of selecting a runtime when none is available.
func noneAvailable(ctx context.Context, r *runner.Runner) error {
	unnamed := *r
	sources := runner.BusAgent()
	sources.Runtime = nil
	unnamed.Sources = &sources
	unnamed.Warn = func(string) {} // Detect has warned
	_, err := unnamed.Resolve(ctx, "")
	return err
}
