package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/runner"
)

func (inv *invocation) detectCommand() *urfave.Command {
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
		Flags: []urfave.Flag{toggle("first,1", "print the first one only; none is a failure", &first)},
		UsageText: inv.usageText(exitCodes("the list was printed; it may be empty", "--first, and no runtime is available"),
			example{"what can be used here", "bus-agent detect"},
			example{"why is one missing?", "bus-agent detect -v"},
			example{"the default, for a script", "agent=$(bus-agent detect --first)"},
		),
		Action: inv.action(hasJSON, func(ctx context.Context, _ call) error {
			return inv.detect(ctx, first)
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

func (inv *invocation) detect(ctx context.Context, first bool) error {
	r := inv.runner(inv.screen.warn)
	all, err := r.Detect(ctx)
	if err != nil {
		return err
	}
	if inv.global.verbose > 0 && !inv.global.json() {
		if err := inv.explainDetection(ctx, r, all); err != nil {
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
	if inv.global.json() {
		return inv.detectJSON(first, available, all)
	}
	var b strings.Builder
	for _, d := range available {
		b.WriteString(d.Runtime.ID + "\n")
	}
	return inv.out.print(b.String())
}

func (inv *invocation) detectJSON(first bool, available, all []runner.Detected) error {
	if first {
		return inv.out.printJSON(stateOf(available[0]))
	}
	list := available
	if inv.global.verbose > 0 {
		list = all
	}
	states := make([]runtimeState, len(list))
	for i, d := range list {
		states[i] = stateOf(d)
	}
	return inv.out.printJSON(states)
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
func (inv *invocation) explainDetection(ctx context.Context, r *runner.Runner, all []runner.Detected) error {
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
	inv.screen.plain(b.String())
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
			return printable(d.Path) + " (" + why + ")"
		}
		return why
	case d.Path != "":
		return printable(d.Path)
	case d.Problem != nil:
		return printable(d.Problem.Error())
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
