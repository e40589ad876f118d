package session

import (
	"context"
	"errors"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/runtimes"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/control"
)

// serveName is the command that the program starts itself with to hold a session.
const ServeName = "__serve"

func ServeCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:   ServeName,
		Hidden: true,
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, _ cmdline.Call) error { return serve(prog, ctx) }),
	}
}

// serve holds one session until its end.
func serve(prog *cmdline.Program, ctx context.Context) error {
	err := control.Serve(ctx, prog.Env.Stdin, func(s control.Settings, warn func(string)) (*control.Manager, error) {
		return newManager(prog, ctx, s, func(line string) {
			prog.Screen.Line(line)
			warn(cmdline.OneWord(line))
		}), nil
	})
	if errors.Is(err, control.ErrNoOrder) {
		return agent.Usagef("%s is for bus-agent itself", ServeName)
	}
	return err
}

// manager returns what holds a session with the settings s.
func newManager(prog *cmdline.Program, ctx context.Context, s control.Settings, warn func(string)) *control.Manager {
	m := &control.Manager{Runner: runtimes.SessionRunner(prog, s.WorkDir, warn), Warn: warn}
	var err error
	if m.Sinks, err = control.StoredSinks(ctx, prog.Stored.Preferences); err != nil {
		warn(cmdline.OneWord(err.Error()))
	}
	return m
}
