package delegation

import (
	"context"
	"errors"
	"sync"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/control"
)

// A Broker runs agents for one caller. Its methods may be called concurrently.
type Broker struct {
	settings Settings
	bounds   bounds
	budget   budget
	sessions control.Manager

	ending context.Context // ends with Close
	end    context.CancelCauseFunc

	mu      sync.Mutex
	known   map[string]string        // native session IDs of runs, and their workdir
	held    map[string]*conversation // by session ID
	closed  bool
	running sync.WaitGroup // calls that hold an agent
}

var errClosed = errors.New("the server ends")

// New returns a Broker. Its bounds are those of s, narrowed to those of the agent that
// this process runs in: see [EnvBounds].
func New(s Settings) (*Broker, error) {
	s, err := s.settle()
	if err != nil {
		return nil, err
	}
	b := &Broker{
		settings: s, known: map[string]string{}, held: map[string]*conversation{},
		bounds: bounds{s.Access, s.Depth}.inherited(s.environ()),
		budget: budget{runs: s.Runs, concurrent: s.Concurrent, timeout: s.Timeout, left: s.TotalTimeout},
	}
	b.sessions.Runner, b.sessions.Store = s.Runner, s.Store
	b.ending, b.end = context.WithCancelCause(context.Background())
	return b, nil
}

// Close ends all agents and returns when they and their processes are gone. Calls that
// run return with an error, and later ones start nothing.
func (b *Broker) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.end(errClosed)
	b.running.Wait() // no session starts from now on
	_ = b.sessions.Close(context.Background(), errClosed.Error())
}

// begin begins a call that starts an agent. Its context ends with ctx and with Close.
func (b *Broker) begin(ctx context.Context) (_ context.Context, done func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, nil, &agent.Error{Kind: agent.ErrCanceled, Err: errClosed}
	}
	b.running.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(b.ending, func() { cancel(context.Cause(b.ending)) })
	return ctx, func() {
		stop()
		cancel(nil)
		b.running.Done()
	}, nil
}

// access returns the access of an agent: asked, or else the most there can be.
func (b *Broker) access(asked agent.Access) (agent.Access, error) {
	switch {
	case b.bounds.depth <= 0:
		return "", limitf("agents at this depth cannot start others")
	case asked == "":
		return b.bounds.access, nil
	}
	if _, err := agent.ParseAccess(string(asked)); err != nil {
		return "", err
	}
	if lesser(asked, b.bounds.access) != asked {
		return "", agent.Usagef("access %s is more than the %s that this server allows; nothing was started", asked, b.bounds.access)
	}
	return asked, nil
}

// environ returns the variables of an agent that is started with access.
func (b *Broker) environ(access agent.Access) string {
	return EnvBounds + "=" + b.bounds.below(access).String()
}

// remember records that an agent of this broker has a session, so that the caller can
// resume it.
func (b *Broker) remember(id, workdir string) {
	if id == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[id] = workdir
}

// resumable returns an error unless a run of this broker had the session in workdir.
func (b *Broker) resumable(id, workdir string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.known[id]; id != "" && (!ok || known != workdir) {
		return agent.Usagef("session %q is not one of an earlier run in %s; nothing was started", id, workdir)
	}
	return nil
}
