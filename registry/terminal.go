package registry

import (
	"context"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/session"
)

// A Terminal is how a runtime's interactive CLI is held in a terminal. What the
// CLI shows and which keys it takes are facts in it; package session/tmux acts on
// them.
type Terminal struct {
	session.Terminal

	// Command turns a settled request into the invocation of the interactive CLI.
	// It is like Runtime.Command, but the prompt is no part of it and Stdin is not
	// used.
	Command func(agent.Request) (agent.Command, error)

	// Prepare replaces Instructions.Prepare. Setup.Files cannot be used: a
	// terminal hands nothing on. What it puts into Setup.Prefix stands before the
	// first message. Setup.SessionID says what session begins.
	Prepare func(ctx context.Context, req agent.Request, w *instructions.Workspace) (agent.Setup, error)

	// Resume says how Command tells the CLI which session to go on with.
	Resume ResumeStyle

	// Options says which settings the CLI honours. MaxTurns and Continue do not
	// apply.
	Options Options
}

// Readiness returns how the CLI is known to be ready, "prompt" or "warm-up".
func (t *Terminal) Readiness() string {
	if t.Prompt != "" {
		return "prompt"
	}
	return "warm-up"
}

// A ResumeStyle is how a CLI is told which session to go on with.
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
