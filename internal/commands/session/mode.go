package session

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/session"

	urfave "github.com/urfave/cli/v2"
)

func (o *startOptions) modeFlag() urfave.Flag {
	return cmdline.Option("mode", "`MODE` of the agent: minimal, by its protocol, or tmux, as people see it in a terminal (default: minimal)", &o.mode).Of(cmdline.Words(session.ModeMinimal, session.ModeTmux))
}

// parseMode returns the mode that was asked for.
func (o *startOptions) parseMode() (session.Mode, error) {
	if o.mode == "" {
		return session.ModeMinimal, nil
	}
	mode, err := session.ParseMode(o.mode)
	if err != nil {
		return "", agent.Usagef("--mode: %w", err)
	}
	return mode, nil
}
