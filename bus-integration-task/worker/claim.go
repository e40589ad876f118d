package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/task"
)

// A Claim is a task that this worker has claimed. Its methods may be called concurrently.
type Claim struct {
	run     *run
	entry   *entry
	attempt string
	cancel  context.CancelCauseFunc
	waiting inputs

	appending sync.Mutex // held while an event is appended
	mu        sync.Mutex
	renewed   time.Time // when the latest event of the attempt was sent
	delivered string    // ID of the latest message that the agent has
}

func newClaim(r *run, e *entry, attempt string, cancel context.CancelCauseFunc, sent time.Time) *Claim {
	c := &Claim{run: r, entry: e, attempt: attempt, cancel: cancel, renewed: sent}
	c.waiting.init(&e.state)
	return c
}

// Task returns the state of the task.
func (c *Claim) Task() task.State {
	c.entry.mu.Lock()
	defer c.entry.mu.Unlock()
	return c.entry.state
}

// Attempt returns the ID of the attempt.
func (c *Claim) Attempt() string { return c.attempt }

// Decide returns what to do next: task.Run, task.Recover or task.GiveUp, or task.Nothing if
// the claim was lost. Checked is an announced commit that was found not to be promoted,
// with the lock of the repository held.
func (c *Claim) Decide(checked string) task.Decision {
	w := c.run.Worker.Worker
	w.AttemptID, w.Checked = c.attempt, checked
	return c.Task().Decide(w, 0)
}

// Events calls each for all events of the task up to now. It tries again while the log
// cannot be reached, or is answered by a server that lacks the latest events, until ctx
// ends; each is not called twice for an event.
func (c *Claim) Events(ctx context.Context, each func(task.Event) error) error {
	after, least := "", c.Task().LastID
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		var refused error
		err := c.run.Log.Read(ctx, c.Task().Ref, after, func(e task.Event) error {
			if refused = each(e); refused == nil {
				after = e.ID
			}
			return refused
		})
		if err == nil && after >= least || refused != nil || errors.Is(err, events.ErrUnauthorized) || errors.Is(err, events.ErrForbidden) || errors.Is(err, events.ErrInvalid) {
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// Delivered records that the agent has the messages of users up to the one with this event
// ID. The next event of the attempt reports it.
func (c *Claim) Delivered(eventID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delivered = max(c.delivered, eventID)
}

// Progress reports what is being done, which also renews the claim.
func (c *Claim) Progress(ctx context.Context, text string) error {
	c.run.logger().Debug("progress", "task", c.Task().Ref, "attempt", c.attempt, "text", text)
	return c.append(ctx, task.Progress, task.Payload{Text: text, Status: string(task.StatusRunning)})
}

// Announce reports that a commit is about to be promoted to a branch. If it succeeds, the
// claim was valid when the event was appended, and the lease has not run out since. The
// caller holds the lock of the repository; see package worktree.
func (c *Claim) Announce(ctx context.Context, commit, branch string) error {
	err := c.append(ctx, task.Progress, task.Payload{Text: "promoting " + commit, Status: string(task.StatusRunning), Commit: commit, BaseBranch: branch})
	if err == nil && c.lapsed() { // this process, or the log, was stopped meanwhile
		err = fmt.Errorf("%w: its lease ran out during the announcement", ErrLost)
		c.cancel(err)
	}
	return err
}

// Report appends any other event of the attempt, such as task.Message and
// task.ApprovalRequested. It fails with ErrLost if the claim was lost.
func (c *Claim) Report(ctx context.Context, name string, p task.Payload) error {
	return c.append(ctx, name, p)
}

// append appends an event of the attempt while the claim is valid. It tries again while
// the log cannot be reached, until ctx ends or the lease has run out, but not if the log
// refuses the token or the event.
func (c *Claim) append(ctx context.Context, name string, p task.Payload) error {
	c.appending.Lock()
	defer c.appending.Unlock()
	p = p.Bounded()
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		c.entry.mu.Lock()
		state := &c.entry.state
		ref, last, holds := state.Ref, state.LastID, state.Holds(c.attempt)
		c.entry.mu.Unlock()
		if !holds {
			return ErrLost
		}
		p.WorkRef, p.Recipient, p.WorkerID, p.AttemptID = ref, c.run.Recipient, c.run.ID, c.attempt
		sent := time.Now()
		c.mu.Lock()
		p.DeliveredID = c.delivered
		c.mu.Unlock()
		id, err := c.run.Log.Append(ctx, name, p, last)
		if err == nil {
			c.entry.apply(task.Event{ID: id, Name: name, Payload: p})
			c.mu.Lock()
			c.renewed = sent
			c.mu.Unlock()
			return nil
		}
		if errors.Is(err, events.ErrUnauthorized) || errors.Is(err, events.ErrForbidden) {
			return fmt.Errorf("the log refuses the worker: %w", err)
		}
		if isInvalid(err) {
			return err
		}
		// It may be in the log though the answer was lost; then it is read as well.
		readErr := c.run.read(ctx, c.entry, ref)
		if readErr == nil && isEnd(name) && c.ended() {
			return nil
		}
		if c.lapsed() {
			err := fmt.Errorf("%w: the log cannot be reached: %w", ErrLost, cmp.Or(readErr, err))
			c.cancel(err)
			return err
		}
		if errors.Is(err, ErrConflict) && c.Task().LastID != last {
			continue // on the condition that is known now
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// isInvalid reports whether an event can never be appended.
func isInvalid(err error) bool {
	return errors.Is(err, task.ErrInvalid) || errors.Is(err, events.ErrInvalid)
}

// Waits between attempts to append.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = 2 * time.Second
)

func isEnd(name string) bool {
	return name == task.Done || name == task.Blocked || name == task.Failed || name == task.Released
}

// ended reports whether the end of this attempt is in the log.
func (c *Claim) ended() bool {
	c.entry.mu.Lock()
	defer c.entry.mu.Unlock()
	return c.entry.state.EndedBy(c.attempt)
}

// lapsed reports whether the lease has run out.
func (c *Claim) lapsed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.renewed) > c.run.lease()
}

// renew renews the lease until ctx ends, and gives the claim up when that fails for the
// length of the lease.
func (c *Claim) renew(ctx context.Context) {
	ticks := time.NewTicker(c.run.lease() / 3)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		c.mu.Lock()
		idle := time.Since(c.renewed)
		c.mu.Unlock()
		if idle < c.run.lease()/4 { // another event has renewed it
			continue
		}
		if err := c.Progress(ctx, "working"); err != nil && ctx.Err() == nil {
			if !errors.Is(err, ErrLost) {
				err = fmt.Errorf("%w: it could not be renewed: %w", ErrLost, err)
			}
			c.cancel(err)
			return
		}
	}
}
