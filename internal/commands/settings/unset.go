package settings

import (
	"context"
	"strings"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/preferences"
)

func UnsetCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:      "unset",
		Usage:     "remove a stored default",
		ArgsUsage: "KEY [MODEL|ID]",
		Description: `KEY is a whole preference key, such as bus-agent.model, or the name that "set"
has for it, such as model, followed by the model or ID where "set" takes one. A
default that is not stored is no error.`,
		UsageText: cmdline.UsageText(`# by its name
bus-agent unset timeout
# by its key
bus-agent unset bus-agent.timeout
# for one model
bus-agent unset model-verbosity-for-model gpt-5.5`,
			"the default is not stored any more", "the preferences cannot be written"),
		BashComplete: cmdline.Completes(func(done []string) []string {
			if len(done) == 1 && done[0] == "runtime-definition" {
				return prog.Stored.DescribedIDs()
			}
			if len(done) > 0 {
				return nil
			}
			var names []string
			for _, s := range settings() {
				names = append(names, s.name)
			}
			for _, s := range settings() {
				if !s.subject {
					names = append(names, s.key)
				}
			}
			return names
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
	var known []*urfave.Command
	for _, s := range settings() {
		known = append(known, &urfave.Command{Name: s.name})
		inside := s.subject && strings.HasPrefix(args[0], s.key+".")
		switch {
		case args[0] == s.name && s.subject && (len(args) != 2 || args[1] == ""):
			return "", agent.Usagef("unset %s needs %s", s.name, strings.Fields(s.arguments)[0])
		case args[0] == s.name && s.subject:
			return s.keyFor(args[1]), nil
		case (args[0] == s.name || args[0] == s.key || inside) && len(args) > 1:
			return "", agent.Usagef("unexpected argument %q", args[1])
		case args[0] == s.name || !s.subject && args[0] == s.key:
			return s.key, nil
		case inside:
			return args[0], nil
		}
	}
	return "", agent.Usagef("unknown preference %q; %s", args[0], cmdline.Hint(known, args[0]))
}
