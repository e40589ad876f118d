package tmux

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/engine"
)

// A paneEngine is an engine.Engine for the agent in one pane.
type paneEngine struct {
	runtime  string
	terminal terminal
	mask     *runner.Masker
	// sessionID returns the CLI's ID of the session; see engine.Program.
	sessionID func() string
	begin     func(ctx context.Context) (pane, error)

	pane  pane
	sink  engine.Sink
	turns chan *turn    // new turns; watch follows one at a time
	ended chan struct{} // closed when the agent and all it started have ended
	why   error         // valid once ended is closed

	mu      lock // held while keys are pressed and while a turn is judged
	current *turn
	request request
	known   string // the ID of the session; used by watch alone after Open
	closing sync.Once
}

// A lock is a mutex whose holder may sleep.
type lock chan struct{}

func (l lock) Lock()   { l <- struct{}{} }
func (l lock) Unlock() { <-l }

var _ engine.Engine = (*paneEngine)(nil)

func newEngine(runtime string, t engine.Terminal, mask *runner.Masker, begin func(ctx context.Context) (pane, error)) *paneEngine {
	return &paneEngine{
		runtime: runtime, terminal: withDefaults(t), mask: mask, begin: begin,
		sessionID: func() string { return "" },
		mu:        make(lock, 1),
		turns:     make(chan *turn, 1), ended: make(chan struct{}),
	}
}

// Open starts the agent and waits until it takes messages.
func (e *paneEngine) Open(ctx context.Context, _ engine.Transport, start engine.Start, sink engine.Sink) (engine.Info, error) {
	p, err := e.begin(ctx)
	if err != nil {
		return engine.Info{}, err
	}
	e.pane, e.sink, e.known = p, sink, start.Resume
	if e.known == "" {
		e.known = e.sessionID()
	}
	go func() {
		e.why = p.wait()
		close(e.ended)
	}()
	go e.watch()
	if err := e.ready(ctx, start.Resume != ""); err != nil {
		return engine.Info{}, e.explain(err)
	}
	return engine.Info{SessionID: e.known, Steers: e.terminal.TypesWhileBusy}, nil
}

// explain returns why the agent has ended if that caused err.
func (e *paneEngine) explain(err error) error {
	if !errors.Is(err, errNoServer) && !errors.Is(err, errEnded) {
		return err
	}
	<-e.ended
	exit, ok := errors.AsType[*agent.ExitError](e.why)
	switch {
	case ok && exit.Stderr != "":
		return fmt.Errorf("%w: %w; the terminal showed:\n%s", errEnded, e.why, exit.Stderr)
	case e.why != nil:
		return fmt.Errorf("%w: %w", errEnded, e.why)
	}
	return err
}

// watch follows the turns until the agent has ended.
func (e *paneEngine) watch() {
	for {
		select {
		case t := <-e.turns:
			e.follow(t)
		case <-e.ended:
			e.sink.Closed(e.why)
			return
		}
	}
}

// Send types a message.
func (e *paneEngine) Send(ctx context.Context, text string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.awaitIdle(ctx); err != nil {
		return err
	}
	d, err := e.deliver(ctx, text)
	if err != nil {
		return err
	}
	e.current = newTurn(d)
	e.request.before = d.before
	select {
	case e.turns <- e.current:
	case <-e.ended:
	}
	return nil
}

var errBusy = errors.New("the agent is busy, though no turn is running")

// awaitIdle waits for an agent that still works: on a message that was given up while
// it was submitted, or on a turn that seemed to be over.
func (e *paneEngine) awaitIdle(ctx context.Context) error {
	for giveUp := time.Now().Add(e.terminal.RetryBudget); ; {
		s, err := e.look(ctx)
		if err != nil {
			return err
		}
		asks := e.terminal.approval(s) != nil
		if !asks && (e.terminal.idle(s) || e.terminal.TypesWhileBusy) {
			return nil
		}
		if e.terminal.holds(s) { // a message that was given up
			if err := e.pane.press(ctx, e.terminal.Clear); err != nil {
				return err
			}
		}
		if time.Now().After(giveUp) {
			if asks {
				return errAsks
			}
			return screenError(e.mask, errBusy, s)
		}
		if err := sleep(ctx, poll); err != nil {
			return err
		}
	}
}

// Steer types a message into the running turn.
func (e *paneEngine) Steer(ctx context.Context, text string) error {
	if !e.terminal.TypesWhileBusy {
		return engine.ErrUnsupported
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == nil {
		return engine.ErrTooLate
	}
	_, err := e.deliver(ctx, text)
	e.current.restart(time.Now())
	return err
}

// Interrupt presses the keys that end a turn.
func (e *paneEngine) Interrupt(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == nil {
		return nil
	}
	e.current.restart(time.Now())
	return e.interrupt(ctx, e.terminal.Interrupt)
}

// interrupt presses keys that end the turn, if there is one. e.mu is held.
func (e *paneEngine) interrupt(ctx context.Context, keys []string) error {
	err := e.press(ctx, keys)
	if err == nil && e.current != nil {
		e.current.interrupted = true
	}
	return err
}

// press presses keys, with a pause between them.
func (e *paneEngine) press(ctx context.Context, keys []string) error {
	for i, key := range keys {
		if i > 0 {
			if err := sleep(ctx, keyPause); err != nil {
				return err
			}
		}
		if err := e.pane.press(ctx, key); err != nil {
			return fmt.Errorf("press %s: %w", key, err)
		}
	}
	return nil
}

// Close presses the keys that end the agent, or closes its terminal.
func (e *paneEngine) Close() error {
	if e.pane == nil {
		return nil
	}
	e.closing.Do(func() {
		if len(e.terminal.Exit) == 0 {
			e.pane.hangUp()
			return
		}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), undoLimit)
			defer cancel()
			if e.press(ctx, e.terminal.Exit) != nil {
				e.pane.hangUp()
			}
		}()
	})
	return nil
}

// result returns the events that end a turn with its text.
func (t *turn) result(text string) []*agent.Event {
	var events []*agent.Event
	if text != "" {
		events = append(events, &agent.Event{Kind: agent.KindText, Text: text})
	}
	return append(events, &agent.Event{Kind: agent.KindResult, Failed: t.interrupted, Interrupted: t.interrupted})
}
