package registry

import "github.com/busdk/bus-agent/session/engine"

// A Terminal describes how a runtime's interactive CLI runs in a terminal: what it
// shows and which keys it takes. Package session/tmux uses it.
type Terminal struct {
	engine.Terminal

	// Use builds the command of the interactive CLI. Stdin is not used; Files must be
	// empty, since a terminal passes no descriptors. Setup.Prefix goes before the first
	// message. Setup.SessionID returns the ID of a new session.
	Use

	// Resume says how Command names the session that the CLI resumes.
	Resume ResumeStyle
}

// A ResumeStyle is how the session that a CLI resumes is named.
type ResumeStyle string

// The styles.
const (
	ResumeNone       ResumeStyle = ""           // not at all
	ResumeFlag       ResumeStyle = "flag"       // --resume ID or --resume=ID
	ResumeSubcommand ResumeStyle = "subcommand" // resume ID
)

func (s ResumeStyle) valid() bool {
	return s == ResumeNone || s == ResumeFlag || s == ResumeSubcommand
}
