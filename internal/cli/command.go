package cli

import (
	"context"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
)

// command describes one command: what the framework needs to run it, and what
// help and completion say of it.
type command struct {
	name    string
	purpose string // one line
	// arguments is how the positional arguments are written in the usage
	// line; min and max how many there may be (max -1: any number).
	arguments string
	min, max  int
	// passes says that what follows a lone "--" is not a positional argument
	// but handed on.
	passes bool
	// json says that --format json is honoured.
	json     bool
	flags    []*commandFlag
	details  string
	examples []example
	exits    []exitCode
	sub      []*command
	// words completes the positional argument after done.
	words func(done []string) []string
	// slow says that the command can take time, or must not be cut short: it starts
	// an agent, reads standard input or writes what is kept.
	slow bool
	run  func(ctx context.Context, call call) error

	// make returns the whole command where this is its name alone; see later.
	make func() *command
}

// later returns a command of which only the name is there until somebody looks at
// the rest: a call needs one command of many.
func later(name string, make func() *command) *command {
	return &command{name: name, make: make}
}

// whole returns c with all that belongs to it.
func (c *command) whole() *command {
	if c.make != nil {
		*c = *c.make()
	}
	return c
}

// call is what a command was called with.
type call struct {
	args []string
	rest []string // after a lone "--", where the command passes it on
}

type example struct{ purpose, line string }

type exitCode struct {
	code int
	when string
}

// misuse is a usage error for which the help of a command says more.
type misuse struct {
	err     error
	command *command
}

func (m *misuse) Error() string { return m.err.Error() }
func (m *misuse) Unwrap() error { return m.err }

// build makes the framework's form of c and of what the line names below it.
func (c *command) build(inv *invocation, line line) *urfave.Command {
	out := &urfave.Command{
		Name:            c.name,
		Flags:           frameworkFlags(c.flags),
		HideHelp:        true,
		HideHelpCommand: true,
		OnUsageError:    usageError,
	}
	for _, sub := range c.sub {
		if slices.Contains(line.path, sub) {
			out.Subcommands = append(out.Subcommands, sub.build(inv, line))
		}
	}
	out.Action = func(u *urfave.Context) error {
		if c.run == nil {
			return &misuse{agent.Usagef("%s needs one of: %s", c.name, strings.Join(c.subnames(), ", ")), line.path[len(line.path)-1]}
		}
		if inv.global.json() && !c.json {
			return agent.Usagef("%s has no JSON form; leave out --format json", pathName(line.path))
		}
		ctx, end := inv.begin(u.Context, c.slow)
		defer end()
		return c.run(ctx, call{args: line.args, rest: line.rest})
	}
	return out
}

// checkArguments reports whether the number of positional arguments is right;
// called is how c is called.
func (c *command) checkArguments(called string, args []string) error {
	switch {
	case len(args) < c.min:
		return &misuse{agent.Usagef("%s needs %s", called, c.arguments), c}
	case c.max >= 0 && len(args) > c.max:
		if c.passes {
			return &misuse{agent.Usagef("unexpected argument %q; arguments for the runtime go after --", args[c.max]), c}
		}
		return &misuse{agent.Usagef("unexpected argument %q", args[c.max]), c}
	}
	return nil
}

func (c *command) lookup(name string) *command {
	for _, sub := range c.sub {
		if sub.name == name {
			return sub.whole()
		}
	}
	return nil
}

func (c *command) subnames() []string {
	names := make([]string, len(c.sub))
	for i, sub := range c.sub {
		names[i] = sub.name
	}
	return names
}
