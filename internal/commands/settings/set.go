package settings

import (
	"context"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/runner"
)

// SetCommand is "set".
func SetCommand(prog *cmdline.Program) *urfave.Command {
	c := &urfave.Command{
		Name:  "set",
		Usage: "store a default",
		Description: `Defaults are stored in your BusDK preferences. Flags and environment variables override
them. "config show" shows the settings in effect.`,
		UsageText: cmdline.UsageText(`# run a certain agent by default
bus-agent set runtime RUNTIME
# let runs take half an hour
bus-agent set timeout 30m`,
			"the default was stored", "the preferences cannot be written"),
		Action: prog.Group,
	}
	for _, s := range settings() {
		subject, suffix := "", ""
		if s.subject {
			subject, _, _ = strings.Cut(s.example, " ")
			subject, suffix = " "+subject, ".MODEL"
			if s.key == runner.KeyRuntimes || s.key == runner.KeyUserConfigForRuntime {
				suffix = ".ID"
			}
		}
		c.Subcommands = append(c.Subcommands, &urfave.Command{
			Name:        s.name,
			Usage:       "store " + s.purpose,
			ArgsUsage:   s.arguments,
			Description: strings.TrimSpace("Writes the preference " + s.key + suffix + ".\n" + s.details),
			UsageText: cmdline.UsageText("# store a default\nbus-agent set "+s.name+" "+s.example+
				"\n# return to the built-in default\nbus-agent unset "+s.name+subject,
				"the default was stored", "the preferences cannot be written"),
			BashComplete: cmdline.Completes(func(done []string) []string { return s.complete(prog, done) }),
			Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
				return s.store(ctx, prog, call.Args)
			}),
		})
	}
	return c
}

// UnsetCommand is "unset".
func UnsetCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:      "unset",
		Usage:     "remove a stored default",
		ArgsUsage: "KEY [MODEL|ID]",
		Description: `KEY is the name that "set" uses, such as model, followed by the model or ID if "set"
takes one. It can also be a whole preference key, such as bus-agent.model. Removing a
default that is not stored succeeds.`,
		UsageText: cmdline.UsageText(`# by its name
bus-agent unset timeout
# by its key
bus-agent unset bus-agent.timeout
# for one model
bus-agent unset model-verbosity-for-model gpt-5.5`,
			"the default is no longer stored", "the preferences cannot be written"),
		BashComplete: cmdline.Completes(func(done []string) (names []string) {
			switch {
			case len(done) == 1 && done[0] == "runtime-definition":
				return prog.Stored.DescribedIDs()
			case len(done) > 0:
				return nil
			}
			var keys []string
			for _, s := range settings() {
				names = append(names, s.name)
				if !s.subject {
					keys = append(keys, s.key)
				}
			}
			return append(names, keys...)
		}),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			key, err := unsetKey(call.Args)
			if err != nil {
				return err
			}
			return preferences.Unset(ctx, key)
		}),
	}
}

// unsetKey returns the preference key that the arguments of unset name.
func unsetKey(args []string) (string, error) {
	var known []string
	for _, s := range settings() {
		known = append(known, s.name)
		named := args[0] == s.name
		whole := args[0] == s.key && !s.subject || s.subject && strings.HasPrefix(args[0], s.key+".")
		switch {
		case named && s.subject && (len(args) != 2 || args[1] == ""):
			return "", cmdline.Misusef("unset %s needs %s", s.name, strings.Fields(s.arguments)[0])
		case named && s.subject:
			return s.keyFor(args[1]), nil
		case (named || whole) && len(args) > 1:
			return "", cmdline.Misusef("unexpected argument %q", args[1])
		case named:
			return s.key, nil
		case whole && s.subject && s.key != runner.KeyRuntimes:
			return runner.KeyForModel(s.key, runner.ModelOfKey(strings.TrimPrefix(args[0], s.key+"."))), nil
		case whole:
			return args[0], nil
		}
	}
	return "", cmdline.Misusef("unknown preference %q%s", args[0], cmdline.Hint(known, args[0]))
}
