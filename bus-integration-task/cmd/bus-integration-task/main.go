// Command bus-integration-task claims tasks of a Bus Events log, has them worked on by an
// agent in an isolated Git worktree, and promotes what is complete. It is also the server
// of the log, a client for tasks, and a local board.
package main

import (
	"context"
	"errors"
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
)

// version is set by the linker: -ldflags "-X main.version=1.2.3".
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run runs the program and returns its exit code: 2 for a usage error, 1 for another.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr)
	err := app.RunContext(ctx, args)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "bus-integration-task: "+oneLine(err.Error()))
	if errors.Is(err, agent.ErrUsage) {
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
		Commands:               []*cli.Command{eventsCommand(), taskCommand(), devCommand()},
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
	refuse := func(c *cli.Context, err error, _ bool) error {
		return agent.Usagef("%v; see %s --help", err, c.App.Name)
	}
	app.OnUsageError = refuse
	var each func(commands []*cli.Command)
	each = func(commands []*cli.Command) {
		for _, c := range commands {
			c.OnUsageError = refuse
			c.HideHelpCommand = true
			if c.Action == nil {
				c.Action = func(ctx *cli.Context) error {
					if name := ctx.Args().First(); name != "" {
						return agent.Usagef("there is no command %q; see %s --help", name, ctx.Command.HelpName)
					}
					return cli.ShowSubcommandHelp(ctx)
				}
			}
			each(c.Subcommands)
		}
	}
	each(app.Commands)
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
