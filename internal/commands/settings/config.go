package settings

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/runner"
)

// ConfigCommand is "config".
func ConfigCommand(prog *cmdline.Program) *urfave.Command {
	const description = `Prints the settings that a run without flags would use. The source of each value is an
environment variable, a preference key, "first available" or "built-in"; a value that is not set
has none. Values that are set but have no effect are listed as skipped, with the reason.
Standard error says what is wrong with a value that cannot be used, and how to repair it.`
	usage := cmdline.UsageText(`# what would a run use here?
bus-agent config show
# the same for a script
bus-agent config show --format json`,
		"the settings were printed")
	show := prog.Action(cmdline.JSON, func(ctx context.Context, _ cmdline.Call) error {
		return showConfig(ctx, prog)
	})
	return &urfave.Command{
		Name:  "config",
		Usage: "show which settings are in effect, and why",
		Subcommands: []*urfave.Command{
			{
				Name:        "show",
				Usage:       "print every setting, its value and its source",
				Description: description,
				UsageText:   usage,
				Action:      show,
			},
		},
		Description: description + ` "config" alone does the same as "config show".`,
		UsageText:   usage,
		Action:      show,
	}
}

// Configuration is what config show prints, in JSON.
type Configuration struct {
	Settings []configured `json:"settings"`
	Skipped  []skipped    `json:"skipped"`
	Warnings []string     `json:"warnings"`

	problems, ignored []string
}

// Problems returns the warnings about values that cannot be used.
func (c *Configuration) Problems() []string { return c.problems }

// Ignored returns the warnings about values that are ignored in part.
func (c *Configuration) Ignored() []string { return c.ignored }

// configured is a setting in effect. Value is null if it has none. Problem says why a
// value cannot be used. Ignored are the names in a list that this build does not have.
type configured struct {
	Name    string   `json:"name"`
	Value   *string  `json:"value"`
	Source  string   `json:"source"`
	Problem string   `json:"problem,omitempty"`
	Ignored []string `json:"ignored,omitempty"`

	shown string // in the table, instead of Value
}

// skipped is a value that is set but has no effect.
type skipped struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
	Reason string `json:"reason"`
}

func showConfig(ctx context.Context, prog *cmdline.Program) error {
	c := Read(ctx, prog)
	if !prog.Global.JSON() {
		for _, line := range c.Warnings {
			prog.Screen.Warn(line)
		}
	}
	return prog.Out.Report(c, c.text())
}

// Read returns the settings that a run without flags would use, and what is wrong with
// them.
func Read(ctx context.Context, prog *cmdline.Program) *Configuration {
	c := &Configuration{Skipped: []skipped{}, Warnings: []string{}}
	for _, line := range prog.Stored.Warnings {
		c.problem(line)
	}
	r := prog.Runner(c.warn)
	lists := *r
	lists.Warn = func(line string) {
		c.warn(line)
		c.ignored = appendNew(c.ignored, line)
	}
	sources := runner.BusAgent()
	selection, err := r.Resolve(ctx, "")
	id := selection.Runtime.ID
	s := r.Settings(ctx, id, agent.Request{}, "")
	add := func(name string, setting runner.Setting[string], from []runner.Source) *configured {
		entry := configured{Name: name, Source: setting.Source}
		if setting.Source != "" {
			entry.Value = &setting.Value
		}
		skippedValues, winner := skippedOf(ctx, prog, name, setting.Source, from, id, s.Model.Value)
		if setting.Err != nil {
			entry.Value, entry.Problem = &winner, setting.Err.Error()
			c.problem(entry.Problem)
		}
		c.Settings = append(c.Settings, entry)
		c.Skipped = append(c.Skipped, skippedValues...)
		return &c.Settings[len(c.Settings)-1]
	}
	addList := func(name string, list runner.Setting[[]string], from []runner.Source) {
		value := runner.Setting[string]{Value: strings.Join(list.Value, ","), Source: list.Source, Err: list.Err}
		entry := add(name, value, from)
		if _, stored := skippedOf(ctx, prog, name, list.Source, from, id, ""); list.Err == nil && stored != "" {
			entry.ignore(stored, list.Value)
		}
	}
	add("runtime", runtimeSetting(ctx, r, selection), sources.Runtime)
	switch {
	case agent.KindOf(err) == "usage":
		c.problem(err.Error())
	case err != nil:
		c.warn(cmdline.NoRuntime(err))
	}
	effective := lists.Lists(ctx)
	addList("order", effective.Order, sources.Order)
	addList("enable", effective.Enable, sources.Enable)
	addList("disable", effective.Disable, sources.Disable)
	addList("fallback", lists.Fallback(ctx, nil), sources.Fallback)
	add("model", s.Model, sources.Model)
	add("model-reasoning-effort", text(s.ReasoningEffort), sources.ReasoningEffort)
	add("model-verbosity", text(s.Verbosity), sources.Verbosity)
	add("output-format", text(s.OutputFormat), sources.OutputFormat)
	add("user-config", text(s.UserConfig), sources.UserConfig)
	timeout := runner.Setting[string]{Value: cmdline.DurationText(s.Timeout.Value), Source: s.Timeout.Source, Err: s.Timeout.Err}
	add("timeout", timeout, sources.Timeout)
	add("record", run.RecordSetting(ctx, prog), run.RecordSources())
	addStored(ctx, prog, c)
	return c
}

// runtimeSetting returns the source of the selection, or the first source whose value
// cannot be used.
func runtimeSetting(ctx context.Context, r *runner.Runner, selection runner.Selection) runner.Setting[string] {
	for _, named := range r.NamedRuntimes(ctx) {
		if named.Err != nil && selection.Token == "" {
			return named
		}
	}
	return runner.Setting[string]{Value: selection.Token, Source: selection.Source}
}

// ignore records which names of the stored list are not used.
func (s *configured) ignore(stored string, used []string) {
	s.shown = stored
	for name := range strings.SplitSeq(stored, ",") {
		if name = strings.TrimSpace(name); name != "" && name != runner.NoFallback && !slices.Contains(used, name) {
			s.Ignored = append(s.Ignored, name)
		}
	}
}

// warn adds a warning that is not there yet.
func (c *Configuration) warn(line string) { c.Warnings = appendNew(c.Warnings, line) }

// problem adds the warning about a value that cannot be used.
func (c *Configuration) problem(line string) {
	c.warn(line)
	c.problems = appendNew(c.problems, line)
}

func appendNew(list []string, line string) []string {
	if slices.Contains(list, line) {
		return list
	}
	return append(list, line)
}

func text[T ~string](s runner.Setting[T]) runner.Setting[string] {
	return runner.Setting[string]{Value: string(s.Value), Source: s.Source, Err: s.Err}
}

// skippedOf returns the values of sources other than winner, and that of winner as it is
// stored.
func skippedOf(ctx context.Context, prog *cmdline.Program, name, winner string, sources []runner.Source, runtimeID, model string) (out []skipped, raw string) {
	won := false
	for _, s := range sources {
		source := s.Env
		var value string
		switch {
		case s.Env != "":
			value = prog.Env.Getenv(s.Env)
		default:
			key := s.Key
			source = s.Key
			switch {
			case s.ForModel:
				key, source = runner.KeyForModel(s.Key, model), s.Key+"."+model
			case s.ForRuntime && runtimeID == "":
				continue
			case s.ForRuntime:
				key = runner.KeyForModel(s.Key, runtimeID)
				source = key
			}
			value = prog.Preference(ctx, key)
		}
		switch {
		case source == winner:
			won, raw = true, value
		case value == "":
		case s.Runtime != "" && s.Runtime != runtimeID:
			out = append(out, skipped{name, value, source, "is for " + s.Runtime + " only"})
		case won:
			out = append(out, skipped{name, value, source, winner + " wins"})
		default:
			out = append(out, skipped{name, value, source, "cannot be used; see the warnings"})
		}
	}
	return out, raw
}

// addStored adds the preferences that have no other source, those of single models and
// runtimes, and unknown ones.
func addStored(ctx context.Context, prog *cmdline.Program, c *Configuration) {
	if prog.Stored.Preferences == nil {
		return
	}
	items, err := preferences.List(ctx)
	if err != nil {
		return // Runner has warned
	}
	known := settings()
	for _, item := range items {
		key, value := item.Key, cmdline.PlainJSON(item.Value)
		i := slices.IndexFunc(known, func(s setting) bool { return s.key == key || s.subject && strings.HasPrefix(key, s.key+".") })
		if i < 0 {
			c.Skipped = append(c.Skipped, skipped{strings.TrimPrefix(key, cmdline.Name+"."), value, key, "unknown to this version"})
			continue
		}
		s := known[i]
		id, definition := strings.CutPrefix(key, runner.KeyRuntimes+".")
		if s.subject && !definition {
			key = s.key + "." + runner.ModelOfKey(strings.TrimPrefix(key, s.key+"."))
		}
		name := strings.TrimPrefix(key, cmdline.Name+".")
		switch {
		case definition && prog.Stored.Registry.Refused(id) != nil:
			c.Skipped = append(c.Skipped, skipped{name, value, key, "does not describe a runtime; see the warnings"})
		case definition:
			c.Settings = append(c.Settings, configured{Name: name, Value: &value, Source: key})
		case s.check != nil:
			entry := configured{Name: name, Value: &value, Source: key}
			if err := s.check(value); err != nil {
				entry.Problem = runner.SourceError(key, err).Error()
				c.problem(entry.Problem)
			}
			c.Settings = append(c.Settings, entry)
		}
	}
}

func (c *Configuration) text() string {
	var t cmdline.Table
	t.Row("SETTING", "VALUE", "SOURCE")
	for _, s := range c.Settings {
		value, source := "-", "not set"
		if s.Value != nil {
			value, source = cmdline.Printable(cmp.Or(s.shown, *s.Value)), cmdline.Printable(s.Source)
		}
		if s.Ignored != nil {
			source += " (ignoring " + cmdline.Printable(strings.Join(s.Ignored, ", ")) + ")"
		}
		if s.Problem != "" {
			source += " (cannot be used; see the warnings)"
		}
		t.Row(s.Name, value, source)
	}
	for _, s := range c.Skipped {
		t.Row(s.Name, cmdline.Printable(s.Value), cmdline.Printable(s.Source)+" (skipped: "+s.Reason+")")
	}
	return t.String()
}
