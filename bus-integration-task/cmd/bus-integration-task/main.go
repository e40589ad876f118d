// Command bus-integration-task claims tasks of a Bus Events log, has them worked on by an
// agent in an isolated Git worktree, and promotes what is complete. It is also the server
// of the log, a client for tasks, and a local board.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode"

	"github.com/busdk/bus-agent/agent"
	"github.com/urfave/cli/v2"

	_ "github.com/busdk/bus-agent/backends/all"
	_ "github.com/busdk/bus-agent/backends/more"

	"github.com/busdk/bus-integration-task/task"
)

// version is set by the linker: -ldflags "-X main.version=1.2.3".
var version = "devel"

func main() {
	// SIGQUIT would end the program alone, without the agents that it has started.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	os.Exit(run(interrupted(signals), os.Args, os.Stdin, os.Stdout, os.Stderr))
}

func init() {
	cli.HelpFlag = sharedFlag{cli.HelpFlag.(*cli.BoolFlag)}
	cli.VersionFlag = sharedFlag{cli.VersionFlag.(*cli.BoolFlag)}
}

// sharedFlag is a flag that every program of the process has. urfave/cli v2.27.7 writes to
// its flags while it reads arguments, so each reading gets a copy.
type sharedFlag struct{ *cli.BoolFlag }

// Apply implements [cli.Flag].
func (f sharedFlag) Apply(set *flag.FlagSet) error {
	own := *f.BoolFlag
	return own.Apply(set)
}

type againKey struct{}

// interrupted returns a context that ends at the first signal. The channel that [again]
// returns of it is closed at the second.
func interrupted(signals <-chan os.Signal) context.Context {
	second := make(chan struct{})
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), againKey{}, second))
	go func() {
		<-signals
		cancel()
		<-signals
		close(second)
	}()
	return ctx
}

// again returns the channel that is closed when the user repeats an interrupt. It is nil
// where there is none.
func again(ctx context.Context) <-chan struct{} {
	second, _ := ctx.Value(againKey{}).(chan struct{})
	return second
}

// run runs the program and returns its exit code: 2 for a usage error, 1 for another.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr)
	app.Reader = stdin
	err := app.RunContext(ctx, args)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "bus-integration-task: "+oneLine(advise(err).Error()))
	if errors.Is(err, agent.ErrUsage) || errors.Is(err, task.ErrInvalid) {
		return 2
	}
	return 1
}

func newApp(stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:                   "bus-integration-task",
		Usage:                  "work on the tasks of a Bus Events log",
		UsageText:              "bus-integration-task --recipient NAME --workspace-root DIR [options]\nbus-integration-task COMMAND",
		Version:                version,
		Flags:                  workerFlags(),
		Action:                 runWorker,
		Commands:               []*cli.Command{eventsCommand(), taskCommand(), devCommand(), containersCommand()},
		Writer:                 stdout,
		ErrWriter:              stderr,
		HideHelpCommand:        true,
		UseShortOptionHandling: false,
		ExitErrHandler:         func(*cli.Context, error) {},
	}
	refuseBadFlags(app)
	return app
}

// refuseBadFlags makes mistakes in flags usage errors of one line.
func refuseBadFlags(app *cli.App) {
	app.OnUsageError = badFlag
	app.Before = refuseMisplaced
	var each func(commands []*cli.Command)
	each = func(commands []*cli.Command) {
		for _, c := range commands {
			c.OnUsageError = badFlag
			c.Before = refuseEmpty
			c.HideHelpCommand = true
			if c.Action == nil {
				c.Action = func(ctx *cli.Context) error {
					if name := ctx.Args().First(); name != "" {
						return agent.Usagef("there is no command %.80q; see %s --help", name, ctx.Command.HelpName)
					}
					var names []string
					for _, sub := range c.Subcommands {
						names = append(names, sub.Name)
					}
					return agent.Usagef("%s needs one of: %s; see %s --help", c.Name, strings.Join(names, ", "), ctx.Command.HelpName)
				}
			}
			each(c.Subcommands)
		}
	}
	each(app.Commands)
}

func badFlag(c *cli.Context, err error, _ bool) error {
	help := c.App.Name
	if c.Command != nil && c.Command.HelpName != "" {
		help = c.Command.HelpName
	}
	const undefined = "flag provided but not defined: -"
	if name, ok := strings.CutPrefix(err.Error(), undefined); ok {
		name = strings.TrimLeft(name, "-")
		if strings.HasPrefix(help, c.App.Name+" task ") && hasFlag(connectionFlags(), name) {
			return agent.Usagef("--%s comes before the command, as in: task --%s VALUE list", name, name)
		}
		return agent.Usagef("there is no option --%.80s; see %s --help", name, help)
	}
	return agent.Usagef("%.300v; see %s --help", err, help)
}

// refuseMisplaced refuses flags of the worker before a command, which does not read them.
func refuseMisplaced(c *cli.Context) error {
	command := c.App.Command(c.Args().First())
	if command == nil {
		return nil
	}
	for _, f := range c.App.Flags {
		name := f.Names()[0]
		switch {
		case !c.IsSet(name):
		case hasFlag(command.Flags, name):
			return agent.Usagef("--%s comes after %s", name, command.Name)
		default:
			return agent.Usagef("--%s has no effect before %s; see %s %s --help", name, command.Name, c.App.Name, command.Name)
		}
	}
	return nil
}

// refuseEmpty refuses flags such as --branch "$BRANCH" when the variable is not set.
func refuseEmpty(c *cli.Context) error {
	for _, f := range c.Command.Flags {
		if text, ok := f.(*cli.StringFlag); ok && c.IsSet(text.Name) && strings.TrimSpace(c.String(text.Name)) == "" {
			return agent.Usagef("--%s is empty; leave it out, or give it a value", text.Name)
		}
	}
	return nil
}

// oneLine returns a text without what acts on a terminal, on one line.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, text)
}
