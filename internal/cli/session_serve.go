package cli

import (
	"context"
	"errors"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/control"
)

// serveCommand is what the program calls itself with to hold a session.
const serveCommand = "__serve"

// serve holds one session until its end.
func (inv *invocation) serve(ctx context.Context) error {
	ctx, end := inv.begin(ctx, true)
	defer end()
	err := control.Serve(ctx, inv.env.Stdin, func(s control.Settings, warn func(string)) (*control.Manager, error) {
		return inv.manager(ctx, s, func(line string) {
			inv.screen.line(line)
			warn(oneWord(line))
		}), nil
	})
	if errors.Is(err, control.ErrNoOrder) {
		return agent.Usagef("%s is for bus-agent itself", serveCommand)
	}
	return err
}

// manager returns what holds a session with the settings s.
func (inv *invocation) manager(ctx context.Context, s control.Settings, warn func(string)) *control.Manager {
	m := &control.Manager{Runner: inv.sessionRunner(s.WorkDir, warn), Warn: warn}
	var err error
	if m.Sinks, err = control.StoredSinks(ctx, inv.stored.preferences); err != nil {
		warn(oneWord(err.Error()))
	}
	return m
}
