package registry

import (
	"context"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/session/engine"
)

// A Use is one way of using a CLI: for a run, for a session or in a terminal. Its
// functions may be called by several goroutines at once.
type Use struct {
	// Options says which settings are honoured. MaxTurns, Continue and Schema apply
	// to runs alone.
	Options Options

	// SlashCommands says that the CLI takes a message that begins with "/" for a
	// command. A line break is put before one.
	SlashCommands bool

	// Check returns what is wrong with inv, as an error of kind agent.ErrUsage,
	// before anything is written. It is pure. Nil means that there is nothing to
	// check.
	Check func(inv Invocation) error

	// Prepare arranges one start: flags, environment, private homes, project
	// instructions and, only where it must, additive files, all through w. The
	// returned Setup's Close takes it back. An error refuses the start; then Prepare
	// has taken back what it did itself. It must not start anything. Nil means that
	// there is nothing to arrange.
	Prepare func(ctx context.Context, inv Invocation, w *instructions.Workspace) (Setup, error)

	// Command turns inv into one command. It is pure, and called once for a start.
	// It puts Invocation.Args where its CLI takes them.
	Command func(inv Invocation) (agent.Command, error)
}

// A Setup is what [Use.Prepare] arranged for one start.
type Setup struct {
	// Args are arguments that go before those of the caller.
	Args []string

	// CallerArgs replace the arguments of the caller where Args hold a part of
	// them; nil leaves them as they are.
	CallerArgs []string

	// Env holds variables for the agent, as "NAME=value". The caller's win.
	Env []string

	// Files are handed to the agent as open descriptors: the first is 3, the
	// next 4 and so on, readable at /dev/fd/3 and so on. They are not visible in
	// the file system.
	Files [][]byte

	// Prefix goes before the prompt, or the first message of a session; for
	// runtimes that take instructions in no other way.
	Prefix string

	// Resume is the ID of the session to continue, where it was found out for
	// Invocation.Continue.
	Resume string

	// SessionID returns the ID of the session that begins, for a CLI in a terminal,
	// which reports no events: once it is chosen, and empty before. It may be
	// called by any goroutine until Close, and may be nil.
	SessionID func() string

	// SessionCreated is when the session to continue was created, where that is
	// known; see engine.Start.
	SessionCreated time.Time

	// Warnings are lines for the user, without prefix or line break.
	Warnings []string

	// Complete adds to the result what the runtime reports in no event, for
	// example in a separate file. The runner calls it once, after the last
	// process of the run is gone and before Close; it may be nil.
	Complete func(*agent.Result)

	// Close takes back what was arranged. The runner calls it once, after the
	// last process is gone. It returns further warnings; it may be nil.
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

// PrependInstructions is a [Use.Prepare] for runtimes that take project
// instructions in no other way than before the prompt. It writes nothing.
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
