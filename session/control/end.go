package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/session"
)

const (
	// stopLimit is how long the end of a session may take.
	stopLimit = 30 * time.Second
	// endPoll is the time between two checks whether a process has ended.
	endPoll = 5 * time.Millisecond
)

// Stop ends a session. It returns when all processes of the session have ended,
// including the process that held it if that process ends with the session. It also
// does so for a session that has already ended or crashed. Stop fails if that takes
// longer than 30 seconds, and with ErrUnreachable if only Terminate can end the
// session.
func (c *Client) Stop(ctx context.Context, e Entry, reason string) error {
	ctx, cancel := c.bounded(ctx, e)
	defer cancel()
	return c.stop(ctx, e, reason)
}

func (c *Client) stop(ctx context.Context, e Entry, reason string) error {
	store, err := c.store()
	if err != nil {
		return err
	}
	for {
		store.settle(&e)
		switch {
		case e.State == session.StateStopped:
			return c.gone(ctx, e)
		case e.State == session.StateCrashed:
			if err := c.gone(ctx, e); err != nil {
				return err
			}
			if err := endStale(ctx, e); err != nil {
				return err
			}
			return store.markStopped(ctx, e)
		case !e.Served():
			return notServed(e)
		}
		_, err := c.call(ctx, e, call{Operation: opStop, Reason: reason}, Watcher{})
		if err == nil {
			return c.gone(ctx, e)
		}
		if errors.Is(err, errLost) {
			if err := c.gone(ctx, e); err != nil {
				return err
			}
		}
		if errors.Is(err, errVersion) {
			return &unreachable{e, err}
		}
		now, loadErr := store.Get(e.SessionID)
		if loadErr != nil || !now.State.Ended() {
			return err
		}
		e = now // it has ended by itself meanwhile, or crashed
	}
}

// Terminate ends a session that does not answer, by a signal to the process that
// holds it. That process must be one that ends with the session. Otherwise
// Terminate is like Stop.
func (c *Client) Terminate(ctx context.Context, e Entry) error {
	if !e.OwnerEnds {
		return notServed(e)
	}
	store, err := c.store()
	if err != nil {
		return err
	}
	ctx, cancel := c.bounded(ctx, e)
	defer cancel()
	process.Terminate(e.Owner) // one that has ended meanwhile is what is wanted
	if err := c.gone(ctx, e); err != nil {
		return err
	}
	now, err := store.Get(e.SessionID)
	if err != nil {
		return fmt.Errorf("see what became of session %s: %w", e.Label(), err)
	}
	return c.stop(ctx, now, "") // which ends what a crash has left
}

// bounded returns a context that ends when a session has been ending for too long.
func (c *Client) bounded(ctx context.Context, e Entry) (context.Context, context.CancelFunc) {
	limit := stopLimit
	if c.stopLimit != 0 {
		limit = c.stopLimit
	}
	return context.WithTimeoutCause(ctx, limit, &agent.Error{Kind: agent.ErrAgent, Err: fmt.Errorf(
		"session %s: process %d, which holds it, has not ended within %v; end it with \"kill -KILL %d\", then run \"session stop %s\" again",
		e.Label(), e.OwnerPID, limit, e.OwnerPID, e.SessionID)})
}

// gone waits until the process that held a session has ended, if it ends with it.
func (c *Client) gone(ctx context.Context, e Entry) error {
	if !e.OwnerEnds || e.Owner == process.Self() {
		return nil
	}
	look := time.NewTicker(endPoll)
	defer look.Stop()
	for process.LifeOf(e.Owner) == process.Alive {
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// endStale ends what a process has left that held a session and crashed.
func endStale(ctx context.Context, e Entry) error {
	if e.OwnerPID == 0 {
		return nil // that would be all owners
	}
	_, left, err := process.EndStaleProcesses(ctx, e.OwnerPID)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("process %d cannot be ended", left[0].PID)
	}
	if err != nil {
		return fmt.Errorf("end what session %s has left: %w", e.Label(), err)
	}
	return nil
}

// markStopped marks a session that crashed as stopped.
func (s *Store) markStopped(ctx context.Context, e Entry) error {
	return s.update(ctx, e.SessionID, func(now *Entry) error {
		if now.State == session.StateCrashed && now.Owner == e.Owner {
			now.State = session.StateStopped
			if now.Ended.IsZero() {
				now.Ended, now.Reason = time.Now().UTC(), "crashed"
			}
		}
		return nil
	})
}
