package cmdline

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/runner"
)

// Name is the name of the program in messages and help.
const Name = "bus-agent"

// A Command is one command of the program.
type Command struct {
	Name string
	Make func(*Program) *urfave.Command
}

// Main runs the command that env.Args names, one of commands, help and completion,
// and returns the exit code: 0 for success, 2 for a usage error, 1 for every other
// failure. When ctx ends, a running agent is stopped, and Main returns once its last
// process is gone. It changes env.
//
// about is the name, usage and help of the program. Only the command that is called
// is made.
func Main(ctx context.Context, env *Env, about *urfave.Command, commands []Command) int {
	prog := New(env, about, commands)
	prog.Stored = readStored(ctx, env)
	err := prog.main(ctx)
	if closeErr := prog.Out.close(err == nil); err == nil {
		err = closeErr
	}
	return prog.exit(err)
}

// A Program is one run of the program.
type Program struct {
	Env    *Env
	Stored Stored
	Global Globals
	Out    *Results
	Screen *Screen

	root     *urfave.Command
	commands []Command
	workdirs []string // values of flags declared by Dir
	rest     []string // the arguments to hand on
	outlets  *outlets
	stdout   io.Writer // standard output, through its outlet
}

// New returns a program that has read nothing yet.
func New(env *Env, about *urfave.Command, commands []Command) *Program {
	prog := &Program{Env: env, Stored: Stored{Registry: env.registry()}, outlets: newOutlets(), root: about}
	prog.stdout = ToTerminal(prog.outlets.writer(env.Stdout), IsTerminalWriter(env.Stdout))
	prog.Screen = NewScreen(ToTerminal(prog.outlets.writer(env.Stderr), env.Terminal.Stderr || IsTerminalWriter(env.Stderr)))
	prog.Out = &Results{prog: prog}
	prog.commands = append(slices.Clip(commands), Command{"completion", completionCommand}, Command{"help", helpCommand}, Command{"version", versionCommand})
	prog.root.Name, prog.root.HelpName, prog.root.Flags = Name, Name, prog.Global.flags()
	return prog
}

func (prog *Program) main(ctx context.Context) error {
	if args := prog.Env.Args; len(args) > 0 && args[0] == completeCommand {
		return prog.complete(args[1:])
	}
	l := prog.arrange(prog.Env.Args)
	switch {
	case l.help:
		return prog.Out.Print(prog.help(l.path))
	case l.version:
		if slices.Contains(l.globals, "--format=json") {
			prog.Global.format = "json"
		}
		return prog.printVersion()
	case l.wrong != "":
		return misuse(l.command(), "%s", l.wrong)
	}
	prog.rest = l.rest
	return prog.app(l).RunContext(ctx, l.words())
}

// printVersion prints the version of the program.
func (prog *Program) printVersion() error {
	version := cmp.Or(prog.Env.Version, "devel")
	return prog.Out.Report(map[string]string{"version": version}, Name+" "+version+"\n")
}

func versionCommand(prog *Program) *urfave.Command {
	return &urfave.Command{
		Name:        "version",
		Usage:       "print the version",
		Description: "Prints the version of the program, as --version does.",
		UsageText: UsageText(`# which version is this?
bus-agent version`,
			"the version was printed"),
		Action: prog.Action(JSON, func(context.Context, Call) error { return prog.printVersion() }),
	}
}

// LimitReaders lets the readers of the results take d longer; see outlets.limit.
func (prog *Program) LimitReaders(d time.Duration) { prog.outlets.limit(d) }

// begin calls Env.Begin before work that takes time.
func (prog *Program) begin(ctx context.Context, slow bool) (context.Context, func()) {
	if !slow || prog.Env.Begin == nil {
		return ctx, func() {}
	}
	ctx, end := prog.Env.Begin(ctx)
	stop := prog.outlets.watch(ctx)
	return ctx, func() {
		stop()
		end()
	}
}

// app returns the application with the command that l names.
func (prog *Program) app(l *line) *urfave.App {
	app := &urfave.App{
		Name:                      Name,
		Flags:                     prog.root.Flags,
		HideHelp:                  true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true,
		Writer:                    io.Discard,
		ErrWriter:                 io.Discard,
		Before:                    func(*urfave.Context) error { return prog.applyGlobals() },
		Action:                    prog.Group,
		OnUsageError:              prog.usageError,
		// urfave/cli would end the program by itself.
		ExitErrHandler: func(*urfave.Context, error) {},
	}
	if len(l.path) > 1 {
		app.Commands = l.path[1:2]
		app.Commands[0].HelpName = "" // it is put together once more
	}
	return app
}

// below returns the commands below c that are not hidden. It makes those of the root.
func (prog *Program) below(c *urfave.Command) []*urfave.Command {
	if c.HelpName != Name {
		return c.Subcommands
	}
	var all []*urfave.Command
	for _, b := range prog.commands {
		if c := b.Make(prog); !c.Hidden {
			all = append(all, c)
		}
	}
	return all
}

// lookup returns the command of the given name below c, nil for none.
func (prog *Program) lookup(c *urfave.Command, name string) *urfave.Command {
	if c != prog.root {
		return c.Command(name)
	}
	for _, b := range prog.commands {
		if b.Name == name {
			return b.Make(prog)
		}
	}
	return nil
}

// Traits of a command.
type Traits int

const (
	// JSON: the command supports --format json.
	JSON Traits = 1 << iota
	// JUnit: the command supports --format junit.
	JUnit
	// Slow: the command takes time or must not be interrupted at any point. It starts an
	// agent, reads standard input or writes state.
	Slow
)

// Call is what a command was called with.
type Call struct {
	*urfave.Context
	Args []string
	Rest []string // after a lone "--", where the command hands it on
}

// Action returns run as urfave/cli calls it.
func (prog *Program) Action(traits Traits, run func(context.Context, Call) error) urfave.ActionFunc {
	return func(c *urfave.Context) error {
		if prog.Global.JSON() && traits&JSON == 0 {
			return misuse(c.Command, "%s has no JSON form; leave out --format json", called(c.Command))
		}
		if prog.Global.JUnit() && traits&JUnit == 0 {
			return misuse(c.Command, "%s has no JUnit form; leave out --format junit", called(c.Command))
		}
		if err := prog.checkArguments(c); err != nil {
			return err
		}
		ctx, end := prog.begin(c.Context, traits&Slow != 0)
		defer end()
		err := run(ctx, Call{c, c.Args().Slice(), prog.rest})
		if m, ok := errors.AsType[*misused](err); ok {
			return misuse(c.Command, "%s", m.text)
		}
		return sayStopped(ctx, err)
	}
}

// Runner returns a runner for the environment of prog. Its warnings, and those about the
// preferences, go to warn.
func (prog *Program) Runner(warn func(string)) *runner.Runner {
	for _, line := range prog.Stored.Warnings {
		warn(line)
	}
	return &runner.Runner{
		Registry:    prog.Stored.Registry,
		CallName:    "--agent",
		Preferences: prog.Stored.Preferences,
		Recorder:    prog.Env.Recorder,
		Environ:     append([]string{}, prog.Env.Environ...), // never nil: that is the process's
		Workdir:     prog.Env.Dir,
		Warn:        warn,
	}
}
