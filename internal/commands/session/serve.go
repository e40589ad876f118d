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

// ServeName is the command that the program starts itself with to hold a session.
const ServeName = "__serve"

// ServeCommand holds a session in the background.
func ServeCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:   ServeName,
		Hidden: true,
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, _ cmdline.Call) error { return serve(ctx, prog) }),
	}
}

// serve holds one session until it ends.
func serve(ctx context.Context, prog *cmdline.Program) error {
	err := control.Serve(ctx, prog.Env.Stdin, func(s control.Settings, warn func(string)) (*control.Manager, error) {
		return newManager(ctx, prog, s, func(line string) {
			prog.Screen.Line(line)
			warn(cmdline.OneWord(line))
		}), nil
	})
	if errors.Is(err, control.ErrNoOrder) {
		return agent.Usagef("%s is for bus-agent itself", ServeName)
	}
	return err
}

// newManager returns a manager for a session with the settings s.
func newManager(ctx context.Context, prog *cmdline.Program, s control.Settings, warn func(string)) *control.Manager {
	m := &control.Manager{Runner: runtimes.SessionRunner(prog, s.Workdir, warn), Warn: warn}
	var err error
	if m.Sinks, err = control.StoredSinks(ctx, prog.Stored.Preferences); err != nil {
		warn(cmdline.OneWord(err.Error()))
	}
	return m
}
