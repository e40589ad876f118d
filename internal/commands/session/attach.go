package session

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

func attachCommand(prog *cmdline.Program) *urfave.Command {
	var write bool
	return &urfave.Command{
		Name:      "attach",
		Usage:     "show the terminal of a session in mode tmux",
		ArgsUsage: "ID",
		Description: `Shows the terminal of a session that was started with --mode tmux, by the tmux
program. Ctrl-B and then d detaches; the session continues. Without --write, nothing that
you type reaches the agent. With --write everything does, past the rules of bus-agent for
messages and approval requests.`,
		Flags: []urfave.Flag{cmdline.Switch("write", "pass on what you type to the agent", &write)},
		UsageText: cmdline.UsageText(`# what does the agent's screen look like?
bus-agent session attach look`,
			"you detached, or the session ended", "the session has ended, or tmux is not installed"),
		BashComplete: completes(prog, hasTerminal),
		Action: action(prog, 0, func(_ context.Context, t target) error {
			args, err := t.AttachArgs(t.entry, write)
			if err != nil {
				return err
			}
			if _, _, ok := terminalOf(prog); !ok {
				return agent.Usagef("attach needs a terminal as standard input and output")
			}
			environ := slices.DeleteFunc(runner.CleanPath(prog.Env.Environ, t.entry.Workdir, false, t.entry.AddDirs...), func(entry string) bool {
				return strings.HasPrefix(entry, "TMUX=") || strings.HasPrefix(entry, "TMUX_PANE=") // a session in a session is wanted
			})
			search, _ := agent.LookupEnv(environ, "PATH")
			path, err := process.LookPath("tmux", search)
			if errors.Is(err, fs.ErrNotExist) {
				return &cmdline.Failure{Text: "cannot show the terminal", Err: err}
			}
			if err != nil {
				return err
			}
			prog.Screen.Info("Ctrl-B d detaches; the session continues")
			return process.Exec(path, args, environ)
		}),
	}
}

// hasTerminal reports whether a session can be attached to.
func hasTerminal(e control.Entry) bool {
	return e.Mode == session.ModeTmux && !e.State.Ended()
}
