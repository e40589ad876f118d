package session

import (
	"errors"

	"github.com/busdk/bus-agent/agent"
)

// A Mode is how an agent is run in a session.
type Mode string

// The modes.
const (
	ModeMinimal Mode = "minimal" // by its protocol; the default
	ModeTmux    Mode = "tmux"    // as people use it, in a terminal of tmux
)

// ParseMode returns the mode that word names; the empty word is ModeMinimal.
func ParseMode(word string) (Mode, error) {
	switch m := Mode(word); m {
	case "":
		return ModeMinimal, nil
	case ModeMinimal, ModeTmux:
		return m, nil
	}
	return "", agent.Usagef("%q is no mode; it is minimal or tmux", word)
}

// ErrNoTerminals says that nothing here can hold a CLI in a terminal.
var ErrNoTerminals = errors.New(`mode tmux is not built in: import _ "github.com/busdk/bus-agent/session/tmux" or set Runner.OpenTerminal`)
