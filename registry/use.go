package registry

import (
	"context"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/session/engine"
)

// A Use is one way to use a CLI: for a run, for a session or in a terminal. Its
// functions may be called by several goroutines at once.
type Use struct {
	// Options are the settings that this use supports. MaxTurns, Continue and Schema apply
	// only to runs.
	Options Options

	// SlashCommands says that the CLI reads a message that begins with "/" as a
	// command. A line break is put before such a message.
	SlashCommands bool

	// Check returns an error of kind agent.ErrUsage if the CLI cannot do what inv
	// requests. It is called before anything is written, and has no side effects. It
	// may be nil.
	Check func(inv Invocation) error

	// Prepare prepares one start: flags, environment, private home and project
	// instructions. It writes only through w, adds files to the workdir only if the
	// CLI cannot get the instructions otherwise, and starts no process. Setup.Close
	// undoes it. If Prepare fails, it undoes its changes itself and nothing is
	// started. It may be nil.
	Prepare func(ctx context.Context, inv Invocation, w *instructions.Workspace) (Setup, error)

	// Command builds the command of inv, with Invocation.Args at the position the CLI
	// needs. It is called once for each start and has no side effects.
	Command func(inv Invocation) (agent.Command, error)
}

// A Setup is the result of [Use.Prepare] for one start.
type Setup struct {
	// Args precede the arguments of the caller.
	Args []string

	// CallerArgs replace the arguments of the caller, for a Prepare that has moved
	// some of them to Args; nil keeps them.
	CallerArgs []string

	// Env holds variables for the agent, as "NAME=value". The caller's variables take
	// precedence.
	Env []string

	// Files are the contents of files that the agent gets as open descriptors: the
	// first is 3, readable as /dev/fd/3, the next 4 and so on. They have no name in
	// the file system.
	Files [][]byte

	// Home is the absolute path of the folder that replaces the user's home of the CLI;
	// empty if none does. Command gets it as Invocation.Home.
	Home string

	// Prefix precedes the prompt or the first message of a session. It is for runtimes
	// that cannot get instructions in another way.
	Prefix string

	// Resume is the ID of the session to continue, if Prepare found it for
	// Invocation.Continue.
	Resume string

	// SessionID returns the ID of the new session of a CLI in a terminal, which
	// reports no events; empty until it is known. It may be called by any goroutine
	// until Close, and may be nil.
	SessionID func() string

	// SessionCreated is when the session to continue was created; zero if unknown. See
	// engine.Start.
	SessionCreated time.Time

	// Warnings are lines for the user, without prefix or line break.
	Warnings []string

	// Complete adds to the result what the events do not have, for example from a
	// file. The runner calls it once, after the last process of the run has ended and
	// before Close. It may be nil.
	Complete func(*agent.Result)

	// Close undoes the preparation and returns further warnings. The runner calls it
	// once, after the last process has ended. It may be nil.
	Close func(context.Context) []string
}

// BeginSession sets the ID of a new session with --session-id, for CLIs with that
// option. It does nothing if inv resumes a session.
func (s *Setup) BeginSession(inv Invocation) {
	if inv.Resume != "" {
		return
	}
	id := engine.NewUUID()
	s.Args = append(s.Args, "--session-id="+id)
	s.SessionID = func() string { return id }
}

// PrependInstructions is a [Use.Prepare] for runtimes that get project instructions
// only as text before the prompt. It writes nothing. See [Invocation.HasInstructions] for
// the sessions that have them already.
func PrependInstructions(_ context.Context, inv Invocation, w *instructions.Workspace) (Setup, error) {
	var setup Setup
	if inv.HasInstructions() {
		return setup, nil
	}
	err := setup.PrependInstructions(w.Chain(), instructions.MaxBytes)
	return setup, err
}

// PrependInstructions makes the text of chain, cut to limit bytes, the prefix of the
// prompt, and adds its warnings.
func (s *Setup) PrependInstructions(chain instructions.Chain, limit int) error {
	text, warnings, err := chain.Text(limit)
	s.Warnings = append(s.Warnings, warnings...)
	if text != "" {
		s.Prefix = text + instructions.EndOfText
	}
	return err
}
