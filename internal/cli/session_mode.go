package cli

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
)

func (o *startOptions) modeFlag() *commandFlag {
	o.mode.words = words([]session.Mode{session.ModeMinimal, session.ModeTmux})
	return option("mode", "`MODE` of the agent: minimal, by its protocol, or tmux, as people see it in a terminal (default: minimal)", &o.mode)
}

// parseMode returns the mode that was asked for.
func (o *startOptions) parseMode() (session.Mode, error) {
	if !o.mode.set {
		return session.ModeMinimal, nil
	}
	if o.mode.text == "" {
		return "", agent.Usagef("--mode is given an empty value; it is minimal or tmux")
	}
	mode, err := session.ParseMode(o.mode.text)
	if err != nil {
		return "", agent.Usagef("--mode: %w", err)
	}
	return mode, nil
}
