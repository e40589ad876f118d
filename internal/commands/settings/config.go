package settings

import (
	"context"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/runner"
)

// ConfigCommand is "config".
func ConfigCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:  "config",
		Usage: "show which settings are in effect, and why",
		Subcommands: []*urfave.Command{
			{
				Name:  "show",
				Usage: "print every setting, its value and its source",
				Description: `Prints the settings that a run without flags would use. The source of each value is an
environment variable, a preference key or "built-in". Values that are set but have no
effect are listed as skipped, with the reason.`,
				UsageText: cmdline.UsageText(`# what would a run use here?
bus-agent config show
# the same for a script
bus-agent config show --format json`,
					"the settings were printed"),
				Action: prog.Action(cmdline.JSON, func(ctx context.Context, _ cmdline.Call) error {
					return showConfig(ctx, prog)
				}),
			},
		},
		UsageText: cmdline.UsageText("", "the settings were printed"),
		Action:    prog.Group,
	}
}

// configuration is what config show prints, in JSON.
type configuration struct {
	Settings []configured `json:"settings"`
	Skipped  []skipped    `json:"skipped"`
	Warnings []string     `json:"warnings"`
}

// configured is a setting in effect. Value is null if it has none.
type configured struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"`
	Source string  `json:"source"`
}

// skipped is a value that is set but has no effect.
type skipped struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
	Reason string `json:"reason"`
}

func showConfig(ctx context.Context, prog *cmdline.Program) error {
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
		c.Warnings = append(c.Warnings, cmdline.NoRuntime(err))
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
		c.Skipped = append(c.Skipped, skippedOf(ctx, prog, name, source, from, id, s.Model.Value)...)
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
	for _, key := range []string{runner.KeyRecord, runner.KeyHooks} {
		name := strings.TrimPrefix(key, cmdline.Name+".")
		if value := prog.Preference(ctx, key); value != "" {
			add(name, value, key, nil)
		}
	}
	addStored(ctx, prog, &c)

	if !prog.Global.JSON() {
		for _, line := range c.Warnings {
			prog.Screen.Warn(line)
		}
	}
	return prog.Out.Report(c, c.text())
}

// skippedOf returns the values of sources other than winner.
func skippedOf(ctx context.Context, prog *cmdline.Program, name, winner string, sources []runner.Source, runtimeID, model string) []skipped {
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

// addStored adds the preferences of single models and runtimes, and unknown ones.
func addStored(ctx context.Context, prog *cmdline.Program, c *configuration) {
	if prog.Stored.Preferences == nil {
		return
	}
	items, err := preferences.List(ctx)
	if err != nil {
		return // Runner has warned
	}
	known := settings()
	for _, item := range items {
		name, value := strings.TrimPrefix(item.Key, cmdline.Name+"."), cmdline.PlainJSON(item.Value)
		id, definition := strings.CutPrefix(item.Key, runner.KeyRuntimes+".")
		switch {
		case slices.ContainsFunc(known, func(s setting) bool { return !s.subject && s.key == item.Key }):
		case definition && prog.Stored.Registry.Refused(id) != nil:
			c.Skipped = append(c.Skipped, skipped{name, value, item.Key, "does not describe a runtime; see the warnings"})
		case slices.ContainsFunc(known, func(s setting) bool { return s.subject && strings.HasPrefix(item.Key, s.key+".") }):
			c.Settings = append(c.Settings, configured{name, &value, item.Key})
		default:
			c.Skipped = append(c.Skipped, skipped{name, value, item.Key, "unknown to this version"})
		}
	}
}

func (c *configuration) text() string {
	var t cmdline.Table
	t.Row("SETTING", "VALUE", "SOURCE")
	for _, s := range c.Settings {
		value, source := "-", "not set"
		if s.Value != nil {
			value, source = cmdline.Printable(*s.Value), s.Source
		}
		t.Row(s.Name, value, source)
	}
	for _, s := range c.Skipped {
		t.Row(s.Name, cmdline.Printable(s.Value), s.Source+" (skipped: "+s.Reason+")")
	}
	return t.String()
}
