package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/sessions"
)

const (
	// stopLimit is how long the end of a session may take.
	stopLimit = 30 * time.Second
	// endPoll is the time between two checks whether a supervisor has ended.
	endPoll = 5 * time.Millisecond
)

// Stop ends a session. It returns when its supervisor and everything that it has
// started have ended, also for a session that is ended or crashed already. It is an
// error when that takes longer than 30 seconds, and ErrUnreachable for a session
// that Terminate ends.
func (s *Sessions) Stop(ctx context.Context, e Entry, reason string) error {
	ctx, cancel := s.bounded(ctx, e)
	defer cancel()
	return s.stop(ctx, e, reason)
}

func (s *Sessions) stop(ctx context.Context, e Entry, reason string) error {
	for {
		switch e.State() {
		case StateEnded:
			return gone(ctx, e)
		case StateElsewhere:
			return e.notHere()
		case StateCrashed:
			if err := s.endLeftovers(ctx, e); err != nil {
				return err
			}
			return s.settle(ctx, e)
		}
		_, err := s.call(ctx, e, Call{Operation: opStop, Reason: reason}, Watcher{})
		if err == nil {
			return gone(ctx, e)
		}
		if errors.Is(err, errLost) {
			if err := gone(ctx, e); err != nil {
				return err
			}
		}
		now, loadErr := s.Load(e.ID)
		if loadErr != nil || !now.over() {
			return err
		}
		e = now // it has ended by itself meanwhile, or crashed
	}
}

// Terminate ends a session whose socket is gone, by a signal to its supervisor.
// Otherwise it is like Stop.
func (s *Sessions) Terminate(ctx context.Context, e Entry) error {
	ctx, cancel := s.bounded(ctx, e)
	defer cancel()
	process.Terminate(e.Supervisor) // one that has ended meanwhile is what is wanted
	if err := gone(ctx, e); err != nil {
		return err
	}
	now, err := s.Load(e.ID)
	if err != nil {
		return fmt.Errorf("see what became of session %s: %w", e.Handle(), err)
	}
	return s.stop(ctx, now, "") // which ends what a crash has left
}

// bounded returns a context that ends when a session has been ending for too long.
func (s *Sessions) bounded(ctx context.Context, e Entry) (context.Context, context.CancelFunc) {
	limit := stopLimit
	if s.stopLimit != 0 {
		limit = s.stopLimit
	}
	return context.WithTimeoutCause(ctx, limit, &agent.Error{Kind: agent.ErrAgent, Err: fmt.Errorf(
		"session %s: process %d, which holds it, has not ended within %v; end it with \"kill -KILL %d\", then run \"session stop %s\" again",
		e.Handle(), e.PID, limit, e.PID, e.ID)})
}

// gone waits until the supervisor of a session has ended, unless that is this
// process.
func gone(ctx context.Context, e Entry) error {
	if e.Supervisor == process.Self() {
		return nil
	}
	look := time.NewTicker(endPoll)
	defer look.Stop()
	for process.LifeOf(e.Supervisor) == process.Alive {
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// endLeftovers ends what a supervisor has left that crashed.
func (s *Sessions) endLeftovers(ctx context.Context, e Entry) error {
	_, left, err := process.EndLeftovers(ctx, e.PID)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("process %d cannot be ended", left[0].PID)
	}
	if err != nil {
		return fmt.Errorf("end what session %s has left: %w", e.Handle(), err)
	}
	return nil
}

// settle puts a session that crashed down as ended.
func (s *Sessions) settle(ctx context.Context, e Entry) error {
	e.Stored, e.Ended, e.Reason = StateEnded, time.Now().UTC(), "crashed"
	if known, err := s.known(&e); err == nil {
		known.State, known.Ended, known.Reason = sessions.StateStopped, e.Ended, e.Reason
		if err := s.store().Save(ctx, known); err != nil {
			return err
		}
	}
	return s.Save(e)
}
