package runtimes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/runner"
)

func DetectCommand(prog *cmdline.Program) *urfave.Command {
	var first bool
	return &urfave.Command{
		Name:  "detect",
		Usage: "list the runtimes that are available here",
		Description: `Prints the IDs of the runtimes that can be used, one a line. The first one is
what "run" takes when neither a flag, nor BUS_AGENT, nor a preference names
one. Nothing is started: a runtime is available when its executable is in PATH
and it is not disabled. With --verbose standard error says of every registered
runtime where it is or why it is left out; with --format json as well, standard
output lists them all.`,
		Flags: []urfave.Flag{cmdline.Toggle("first,1", "print the first one only; none is a failure", &first)},
		UsageText: cmdline.UsageText(`# what can be used here
bus-agent detect
# why is one missing?
bus-agent detect -v
# the default, for a script
agent=$(bus-agent detect --first)`,
			"the list was printed; it may be empty", "--first, and no runtime is available"),
		Action: prog.Action(cmdline.JSON, func(ctx context.Context, _ cmdline.Call) error {
			return detect(prog, ctx, first)
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

func detect(prog *cmdline.Program, ctx context.Context, first bool) error {
	r := prog.Runner(prog.Screen.Warn)
	all, err := r.Detect(ctx)
	if err != nil {
		return err
	}
	if prog.Global.Verbose > 0 && !prog.Global.JSON() {
		if err := explainDetection(prog, ctx, r, all); err != nil {
			return err
		}
	}
	var available []runner.Detected
	for _, d := range all {
		if d.Available() {
			available = append(available, d)
		}
	}
	if first {
		if len(available) == 0 {
			return noneAvailable(ctx, r)
		}
		available = available[:1]
	}
	if prog.Global.JSON() {
		return detectJSON(prog, first, available, all)
	}
	var b strings.Builder
	for _, d := range available {
		b.WriteString(d.Runtime.ID + "\n")
	}
	return prog.Out.Print(b.String())
}

func detectJSON(prog *cmdline.Program, first bool, available, all []runner.Detected) error {
	if first {
		return prog.Out.PrintJSON(stateOf(available[0]))
	}
	list := available
	if prog.Global.Verbose > 0 {
		list = all
	}
	states := make([]runtimeState, len(list))
	for i, d := range list {
		states[i] = stateOf(d)
	}
	return prog.Out.PrintJSON(states)
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

// explainDetection writes a table of all runtimes and what shaped the list.
func explainDetection(prog *cmdline.Program, ctx context.Context, r *runner.Runner, all []runner.Detected) error {
	quiet := *r
	quiet.Warn = func(string) {}
	lists, err := quiet.Lists(ctx)
	if err != nil {
		return err
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, d := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\n", d.Runtime.ID, stateWord(d), whereOrWhy(d, lists))
	}
	w.Flush()
	for _, list := range []struct {
		name    string
		setting runner.Setting[[]string]
	}{{"order", lists.Order}, {"enable", lists.Enable}, {"disable", lists.Disable}} {
		if list.setting.Source != "" {
			fmt.Fprintf(&b, "%s: %s (%s)\n", list.name, strings.Join(list.setting.Value, ", "), list.setting.Source)
		}
	}
	prog.Screen.Plain(b.String())
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

// noneAvailable returns the failure of a selection that finds nothing.
func noneAvailable(ctx context.Context, r *runner.Runner) error {
	unnamed := *r
	sources := runner.BusAgent()
	sources.Runtime = nil
	unnamed.Sources = &sources
	unnamed.Warn = func(string) {} // it has warned already
	_, err := unnamed.Resolve(ctx, "")
	return err
}
