package registry

import "github.com/busdk/bus-agent/session/engine"

// A Terminal is how a runtime's interactive CLI is held in a terminal. What the
// CLI shows and which keys it takes are facts in it; package session/tmux acts on
// them.
type Terminal struct {
	engine.Terminal

	// Use builds the command of the interactive CLI. Stdin is not used, and Files
	// cannot be: a terminal hands nothing on. Setup.Prefix goes before the first
	// message. Setup.SessionID says what session begins.
	Use

	// Resume says how Command names the session that the CLI resumes.
	Resume ResumeStyle
}

// Readiness returns how the CLI is known to be ready, "prompt" or "warm-up".
func (t *Terminal) Readiness() string {
	if t.Prompt != "" {
		return "prompt"
	}
	return "warm-up"
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
