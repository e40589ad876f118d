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
	// Options says which settings are honoured. MaxTurns, Continue and Schema apply
	// only to runs.
	Options Options

	// SlashCommands says that the CLI reads a message that begins with "/" as a
	// command. A line break is put before such a message.
	SlashCommands bool

	// Check returns an error of kind agent.ErrUsage if the CLI cannot do what inv
	// says. It is called before anything is written, and is pure. It may be nil.
	Check func(inv Invocation) error

	// Prepare arranges one start: flags, environment, private homes, project
	// instructions and, only where it must, additive files, all through w. Setup.Close
	// undoes it. An error refuses the start, and Prepare has undone what it did. It
	// must not start a process. It may be nil.
	Prepare func(ctx context.Context, inv Invocation, w *instructions.Workspace) (Setup, error)

	// Command builds the command of inv, with Invocation.Args where the CLI takes
	// them. It is pure, and called once for a start.
	Command func(inv Invocation) (agent.Command, error)
}

// A Setup is what [Use.Prepare] arranged for one start.
type Setup struct {
	// Args are arguments that go before those of the caller.
	Args []string

	// CallerArgs replace the arguments of the caller if Args hold some of them; nil
	// leaves them as they are.
	CallerArgs []string

	// Env holds variables for the agent, as "NAME=value". Those of the caller take
	// precedence.
	Env []string

	// Files are open descriptors of the agent: the first is 3, readable as
	// /dev/fd/3, the next 4 and so on. They have no name in the file system.
	Files [][]byte

	// Prefix goes before the prompt, or the first message of a session. It is for
	// runtimes that cannot get instructions otherwise.
	Prefix string

	// Resume is the ID of the session to continue, if Prepare found it for
	// Invocation.Continue.
	Resume string

	// SessionID returns the ID of the new session of a CLI in a terminal, which
	// reports no events; empty until it is known. It may be called by any goroutine
	// until Close, and may be nil.
	SessionID func() string

	// SessionCreated is when the session to continue was created; zero if that is
	// not known. See engine.Start.
	SessionCreated time.Time

	// Warnings are lines for the user, without prefix or line break.
	Warnings []string

	// Complete adds to the result what the runtime reports elsewhere than in events,
	// for example in a file. The runner calls it once, after the last
	// process of the run is gone and before Close; it may be nil.
	Complete func(*agent.Result)

	// Close undoes what was arranged. The runner calls it once, after the last
	// process is gone. It returns further warnings; it may be nil.
	Close func(context.Context) []string
}

// BeginSession gives a session that inv does not resume an ID by --session-id, for
// CLIs that take one.
func (s *Setup) BeginSession(inv Invocation) {
	if inv.Resume != "" {
		return
	}
	id := engine.NewUUID()
	s.Args = append(s.Args, "--session-id="+id)
	s.SessionID = func() string { return id }
}

// PrependInstructions is a [Use.Prepare] for runtimes that get project instructions
// only as text before the prompt. It writes nothing.
func PrependInstructions(_ context.Context, _ Invocation, w *instructions.Workspace) (Setup, error) {
	var setup Setup
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
