package settings

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/runner"
)

func ConfigCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:  "config",
		Usage: "say what is in effect and why",
		Subcommands: []*urfave.Command{
			{
				Name:  "show",
				Usage: "print every setting, its value and where it came from",
				Description: `Prints what a run without flags would use. The source of a value is a variable,
a preference key, or built-in. What is set too but does not count is listed as
skipped, with the source that wins over it.`,
				UsageText: cmdline.UsageText(`# what would a run use here?
bus-agent config show
# the default model, for a script
bus-agent config show --format json`,
					"the settings were printed"),
				Action: prog.Action(cmdline.JSON, func(ctx context.Context, _ cmdline.Call) error {
					return showConfig(prog, ctx)
				}),
			},
		},
		UsageText: cmdline.UsageText("",
			"the settings were printed"),
		Action: prog.Group,
	}
}

// configuration is what config show prints, in JSON.
type configuration struct {
	Settings []configured `json:"settings"`
	Skipped  []skipped    `json:"skipped"`
	Warnings []string     `json:"warnings"`
}

// configured is one setting in effect. Value is null where there is none.
type configured struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"`
	Source string  `json:"source"`
}

// skipped is a value that is set but does not count.
type skipped struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
	Reason string `json:"reason"`
}

func showConfig(prog *cmdline.Program, ctx context.Context) error {
	c := configuration{Skipped: []skipped{}, Warnings: []string{}}
	r := prog.Runner(func(line string) {
		if !slices.Contains(c.Warnings, line) {
			c.Warnings = append(c.Warnings, line)
		}
	})
	sources := runner.BusAgent()
	lists, err := r.Lists(ctx)
	if err != nil {
		return err
	}
	selection, err := r.Resolve(ctx, "")
	if agent.KindOf(err) == "usage" {
		return err
	}
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		c.Warnings = append(c.Warnings, strings.TrimSuffix(first, "; install or enable one of:"))
	}
	others, err := r.Fallback(ctx, nil)
	if err != nil {
		return err
	}
	s, err := r.Settings(ctx, selection.Runtime.ID, agent.Request{}, "")
	if err != nil {
		return err
	}
	id := selection.Runtime.ID
	add := func(name, value, source string, from []runner.Source) {
		entry := configured{Name: name, Source: source}
		if source != "" {
			entry.Value = &value
		}
		c.Settings = append(c.Settings, entry)
		c.Skipped = append(c.Skipped, skippedOf(prog, ctx, name, source, from, id, s.Model.Value)...)
	}
	add("runtime", selection.Token, selection.Source, sources.Runtime)
	add("order", strings.Join(lists.Order.Value, ","), lists.Order.Source, sources.Order)
	add("enable", strings.Join(lists.Enable.Value, ","), lists.Enable.Source, sources.Enable)
	add("disable", strings.Join(lists.Disable.Value, ","), lists.Disable.Source, sources.Disable)
	add("fallback", strings.Join(others.Value, ","), others.Source, sources.Fallback)
	add("model", s.Model.Value, s.Model.Source, sources.Model)
	add("model-reasoning-effort", string(s.ReasoningEffort.Value), s.ReasoningEffort.Source, sources.ReasoningEffort)
	add("model-verbosity", string(s.Verbosity.Value), s.Verbosity.Source, sources.Verbosity)
	add("output-format", string(s.OutputFormat.Value), s.OutputFormat.Source, sources.OutputFormat)
	add("timeout", cmdline.DurationText(s.Timeout.Value), s.Timeout.Source, sources.Timeout)
	if value := prog.Preference(ctx, runner.KeyRecord); value != "" {
		add("record", value, runner.KeyRecord, nil)
	}
	if value := prog.Preference(ctx, runner.KeyHooks); value != "" {
		add("hooks", value, runner.KeyHooks, nil)
	}
	addStored(prog, ctx, &c)

	if prog.Global.JSON() {
		return prog.Out.PrintJSON(c)
	}
	for _, line := range c.Warnings {
		prog.Screen.Warn(line)
	}
	return prog.Out.Print(c.text())
}

// skippedOf lists the values of sources that are set but lose against winner.
func skippedOf(prog *cmdline.Program, ctx context.Context, name, winner string, sources []runner.Source, runtimeID, model string) []skipped {
	var out []skipped
	won := false
	for _, s := range sources {
		source := s.Env
		var value string
		switch {
		case s.Env != "":
			value = prog.Env.Getenv(s.Env)
		default:
			source = s.Key
			if s.ForModel {
				source = runner.KeyForModel(s.Key, model)
			}
			value = prog.Preference(ctx, source)
		}
		switch {
		case source == winner:
			won = true
		case value == "":
		case s.Runtime != "" && s.Runtime != runtimeID:
			out = append(out, skipped{name, value, source, "is for " + s.Runtime + " only"})
		case won:
			out = append(out, skipped{name, value, source, winner + " wins"})
		default:
			out = append(out, skipped{name, value, source, "cannot be used; see the warnings"})
		}
	}
	return out
}

// addStored adds the preferences of single models and runtimes, and those
// nobody reads.
func addStored(prog *cmdline.Program, ctx context.Context, c *configuration) {
	if prog.Stored.Preferences == nil {
		return
	}
	items, err := preferences.List(ctx)
	if err != nil {
		return // reading them has warned already
	}
	known := settings()
	for _, item := range items {
		if slices.ContainsFunc(known, func(s setting) bool { return !s.subject && s.key == item.Key }) {
			continue
		}
		value := cmdline.PlainJSON(item.Value)
		if id, ok := strings.CutPrefix(item.Key, runner.KeyRuntimes+"."); ok && prog.Stored.Registry.Refused(id) != nil {
			c.Skipped = append(c.Skipped, skipped{strings.TrimPrefix(item.Key, cmdline.Name+"."), value, item.Key, "describes no runtime; see the warnings"})
			continue
		}
		if slices.ContainsFunc(known, func(s setting) bool { return s.subject && strings.HasPrefix(item.Key, s.key+".") }) {
			c.Settings = append(c.Settings, configured{strings.TrimPrefix(item.Key, cmdline.Name+"."), &value, item.Key})
			continue
		}
		c.Skipped = append(c.Skipped, skipped{strings.TrimPrefix(item.Key, cmdline.Name+"."), value, item.Key, "is no setting of this version"})
	}
}

func (c *configuration) text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SETTING\tVALUE\tSOURCE")
	for _, s := range c.Settings {
		value, source := "-", "not set"
		if s.Value != nil {
			value, source = cmdline.Printable(*s.Value), s.Source
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, value, source)
	}
	for _, s := range c.Skipped {
		fmt.Fprintf(w, "%s\t%s\t%s (skipped: %s)\n", s.Name, cmdline.Printable(s.Value), s.Source, s.Reason)
	}
	w.Flush()
	return b.String()
}
