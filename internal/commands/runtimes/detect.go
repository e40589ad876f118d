package runtimes

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
executable is in PATH and it is not disabled. Detect starts no program.

With --verbose, standard error lists every registered runtime, with the path of its
executable or the reason why it is not available. With --verbose and --format json,
standard output lists every registered runtime instead.`,
		Flags: []urfave.Flag{cmdline.Switch("first,1", "print only the first available runtime; fail if none is available", &first)},
		UsageText: cmdline.UsageText(`# which runtimes can be used here?
bus-agent detect
# why is one missing?
bus-agent detect -v
# the default, for a script
agent=$(bus-agent detect --first)`,
			"the list was printed; it may be empty", "with --first, no runtime is available"),
		Action: prog.Action(cmdline.JSON, func(ctx context.Context, _ cmdline.Call) error {
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
	InstallURL string   `json:"install_url"`
}

func detect(ctx context.Context, prog *cmdline.Program, first bool) error {
	r := prog.Runner(prog.Screen.Warn)
	all, err := r.Detect(ctx)
	if err != nil {
		return err
	}
	verbose := prog.Global.Verbose > 0
	if verbose && !prog.Global.JSON() {
		if err := explainDetection(ctx, prog, r, all); err != nil {
			return err
		}
	}
	var text strings.Builder
	states := []runtimeState{}
	for _, d := range all {
		if d.Available() {
			text.WriteString(d.Runtime.ID + "\n")
		}
		if first && d.Available() {
			return prog.Out.Report(stateOf(d), text.String())
		}
		if d.Available() || verbose {
			states = append(states, stateOf(d))
		}
	}
	if first {
		return noneAvailable(ctx, r)
	}
	return prog.Out.Report(states, text.String())
}

func stateOf(d runner.Detected) runtimeState {
	s := runtimeState{
		ID: d.Runtime.ID, Name: d.Runtime.Name, Variants: d.Runtime.Variants,
		Available: d.Available(), Disabled: d.Disabled, Path: d.Path, InstallURL: d.Runtime.InstallURL,
	}
	if d.Problem != nil {
		s.Problem = d.Problem.Error()
	}
	return s
}

// explainDetection shows a table of all runtimes, and the lists that order and filter it.
func explainDetection(ctx context.Context, prog *cmdline.Program, r *runner.Runner, all []runner.Detected) error {
	quiet := *r
	quiet.Warn = func(string) {} // Detect has warned
	lists, err := quiet.Lists(ctx)
	if err != nil {
		return err
	}
	var table cmdline.Table
	for _, d := range all {
		table.Row(d.Runtime.ID, stateWord(d), whereOrWhy(d, lists))
	}
	text := table.String()
	for _, list := range []struct {
		name    string
		setting runner.Setting[[]string]
	}{{"order", lists.Order}, {"enable", lists.Enable}, {"disable", lists.Disable}} {
		if list.setting.Source != "" {
			text += fmt.Sprintf("%s: %s (%s)\n", list.name, strings.Join(list.setting.Value, ", "), list.setting.Source)
		}
	}
	prog.Screen.Plain(text)
	return nil
}

func stateWord(d runner.Detected) string {
	switch {
	case d.Available():
		return "available"
	case d.Disabled:
		return "disabled"
	case d.Problem != nil:
		return "refused"
	}
	return "not found"
}

func whereOrWhy(d runner.Detected, lists runner.Lists) string {
	switch {
	case d.Disabled:
		source := lists.Disable.Source
		why := "listed in " + source
		if !slices.Contains(lists.Disable.Value, d.Runtime.ID) {
			why = "not listed in " + lists.Enable.Source
		}
		if d.Path != "" {
			return cmdline.Printable(d.Path) + " (" + why + ")"
		}
		return why
	case d.Path != "":
		return cmdline.Printable(d.Path)
	case d.Problem != nil:
		return cmdline.Printable(d.Problem.Error())
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
