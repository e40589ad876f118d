package acpagent

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// A Server serves clients of the Agent Client Protocol. Its fields are set before the
// first call of Serve. The zero value serves the default runtime of the user.
type Server struct {
	// Manager returns the manager that starts or resumes a session with the settings s,
	// whose Workdir is set. It is called from several goroutines, and can return the same
	// manager each time. Nil means a control.Manager that lets other processes reach its
	// sessions.
	Manager func(ctx context.Context, s control.Settings) (*control.Manager, error)

	// Start is what new sessions start with. Its Workdir, Name, InitialPrompt and
	// session ID must be empty: the client names the workdir, and sends the prompts.
	Start control.StartOptions

	// Name and Version introduce the agent to the client. Without a Name it is bus-agent.
	Name, Version string

	// Warn receives each warning as one line, from any goroutine; it may be nil.
	Warn func(line string)

	// ReadTimeout is how long the client may leave a message unread before it counts as
	// gone. Zero means DefaultReadTimeout.
	ReadTimeout time.Duration

	turnGrace time.Duration // in place of session.TurnGrace, in tests
}

// DefaultReadTimeout is the default of [Server.ReadTimeout].
const DefaultReadTimeout = time.Minute

const (
	// stopTime is how long sessions may take to end when the client has gone, before they
	// are ended by force.
	stopTime = 3 * time.Second
	// maxSessions is how many sessions a client can have open.
	maxSessions = 100
	// maxRequests is how many requests of a client can wait for their answers.
	maxRequests = 1000
)

// grace returns how long an agent may take to answer, or to end a turn that was cancelled.
func (s *Server) grace() time.Duration { return cmp.Or(s.turnGrace, session.TurnGrace) }

// errGone is why sessions end whose client has closed its side.
var errGone = errors.New("the client has gone")

// errClosed is why a session ends that the client has closed, and why it does not start
// again.
var errClosed = errors.New("the client has closed the session")

// errNoAnswer is why a setting is not changed.
var errNoAnswer = errors.New("the agent did not answer in time")

// errNotRead is why sessions end whose client does not read.
var errNotRead = errors.New("the client does not read what is sent to it")

// Serve serves one client until in ends, ctx ends, or the client does not read out. It
// then stops the sessions of the client and returns when all their processes have ended.
// It returns nil if in has ended, and otherwise why it ended. A read of in that blocks
// then continues until it returns; so does a write to out.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	if s.Start.Workdir != "" || s.Start.Name != "" || s.Start.InitialPrompt != "" || s.Start.Identity.SessionID != "" {
		return agent.Usagef("Workdir, Name, InitialPrompt or a session ID is set in Server.Start; the client names them")
	}
	c := newConnection(ctx, s, out)
	read := make(chan error, 1)
	go func() { read <- c.read(in) }()
	var err error
	select {
	case err = <-read:
		c.end(cmp.Or(err, errGone))
	case <-c.ctx.Done():
		if err = context.Cause(c.ctx); err == errGone {
			err = <-read // it has ended, or ends now
		}
	}
	c.close()
	return err
}
