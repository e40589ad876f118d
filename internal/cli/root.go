package cli

import (
	"context"
	"strconv"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// rootCommand returns the command that has the others below it, without them.
func (inv *invocation) rootCommand() *urfave.Command {
	return &urfave.Command{
		Name:     program,
		HelpName: program,
		Usage:    "run AI coding agents behind one contract",
		Description: `bus-agent runs the agent CLI you have installed with a prompt, in a directory,
and shows what it does. Registered runtimes: ` + runtimesHere + `.`,
		Flags: inv.global.flags(),
	}
}

// builders make the commands. A call needs one of them, so the others are not made.
func (inv *invocation) builders() []builder {
	return []builder{
		{"detect", inv.detectCommand},
		{"run", inv.runCommand},
		{"session", inv.sessionCommand},
		{"chat", inv.chatCommand},
		{"runs", inv.runsCommand},
		{"render", inv.renderCommand},
		{"format", inv.formatCommand},
		{"set", inv.setCommand},
		{"unset", inv.unsetCommand},
		{"config", inv.configCommand},
		{"instructions", inv.instructionsCommand},
		{"runtime", inv.runtimeCommand},
		{"doctor", func() *urfave.Command { return inv.doctorCommand("doctor") }},
		{"completion", inv.completionCommand},
		{"help", inv.helpCommand},
	}
}

type builder struct {
	name string
	make func() *urfave.Command
}

// below returns the commands below c. It makes those of the root.
func (inv *invocation) below(c *urfave.Command) []*urfave.Command {
	if c.HelpName != program {
		return c.Subcommands
	}
	var all []*urfave.Command
	for _, b := range inv.builders() {
		all = append(all, b.make())
	}
	return all
}

// lookup returns the command of the given name below c, nil for none.
func (inv *invocation) lookup(c *urfave.Command, name string) *urfave.Command {
	if c != inv.root {
		return c.Command(name)
	}
	for _, b := range inv.builders() {
		if b.name == name {
			return b.make()
		}
	}
	return nil
}

// marks say what an action needs.
type marks int

const (
	// hasJSON: --format json is honoured.
	hasJSON marks = 1 << iota
	// slow: the command can take time, or must not be cut short: it starts an agent,
	// reads standard input or writes what is kept.
	slow
)

// call is what a command was called with.
type call struct {
	*urfave.Context
	args []string
	rest []string // after a lone "--", where the command hands it on
}

// action returns run as urfave/cli calls it.
func (inv *invocation) action(needs marks, run func(context.Context, call) error) urfave.ActionFunc {
	return func(c *urfave.Context) error {
		if inv.global.json() && needs&hasJSON == 0 {
			return agent.Usagef("%s has no JSON form; leave out --format json", called(c.Command))
		}
		if err := checkArguments(c); err != nil {
			return err
		}
		ctx, end := inv.begin(c.Context, needs&slow != 0)
		defer end()
		return run(ctx, call{c, c.Args().Slice(), inv.rest})
	}
}

func (inv *invocation) helpCommand() *urfave.Command {
	return &urfave.Command{
		Name:      "help",
		Usage:     "show help for a command",
		ArgsUsage: "[COMMAND...]",
		UsageText: inv.usageText(exitCodes("the help was printed"),
			example{"everything about run", "bus-agent help run"},
			example{"how to change one default", "bus-agent help set model"},
		),
		BashComplete: completes(func(done []string) []string {
			l := inv.arrange(done)
			if l.lost {
				return nil
			}
			var names []string
			for _, c := range inv.below(l.command()) {
				names = append(names, c.Name)
			}
			return names
		}),
		Action: inv.action(0, func(_ context.Context, call call) error {
			l := inv.arrange(call.args)
			if len(l.args) > 0 {
				return misuse(inv.root, "unknown help topic %q; %s", l.args[0], hint(inv.below(l.command()), l.args[0]))
			}
			return inv.out.print(inv.help(l.path))
		}),
	}
}

// runner returns a runner over what the environment offers. Its warnings, and
// those of what is stored, go to warn.
func (inv *invocation) runner(warn func(string)) *runner.Runner {
	for _, line := range inv.stored.warnings {
		warn(line)
	}
	return &runner.Runner{
		Registry:    inv.stored.registry,
		Preferences: inv.stored.preferences,
		Recorder:    inv.env.Recorder,
		Environ:     append([]string{}, inv.env.Environ...), // never nil: that is the process's
		Workdir:     inv.env.Dir,
		Warn:        warn,
	}
}

func quote(s string) string { return strconv.Quote(s) }
