package worker

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/busdk/bus-integration-task/task"
)

// serve claims tasks until ctx ends or the log cannot be followed. Attempts run under
// attempts, and have ended when it returns.
func (r *run) serve(ctx, attempts context.Context, following <-chan error) error {
	began := 0
	idle := time.Now()
	for {
		r.readNew(ctx)
		next, wait := r.next(began)
		if next != nil {
			if r.claim(ctx, attempts, next) {
				began++
			}
			continue
		}
		if r.Once && began > 0 && r.running == 0 {
			return nil
		}
		if r.running > 0 {
			idle = time.Now()
		} else if r.IdleTimeout > 0 {
			left := time.Until(idle.Add(r.IdleTimeout))
			if left <= 0 {
				return nil
			}
			wait = min(wait, left)
		}
		timer := time.NewTimer(wait)
		select {
		case <-r.changed:
		case <-timer.C:
		case ref := <-r.over:
			r.forget(ref)
		case err := <-following:
			r.endAll(0)
			return err
		case <-ctx.Done():
			r.endAll(r.handBack())
			return nil
		}
		timer.Stop()
	}
}

// longWait is how long serve waits at most before it decides again.
const longWait = time.Minute

// next returns the task to claim now, if there is one and there is room for it, or how
// long to wait for one.
func (r *run) next(began int) (*entry, time.Duration) {
	parallel := max(r.Parallel, 1)
	if r.running >= parallel || r.Once && began > 0 {
		return nil, longWait
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ready {
		return nil, longWait
	}
	wait := longWait
	var best *entry
	var least uint64
	for ref, e := range r.entries {
		e.mu.Lock()
		later := time.Until(e.retry)
		d := e.state.Decide(r.Worker.Worker, time.Since(e.heard))
		free := e.claim == nil
		e.mu.Unlock()
		switch {
		case !free || d.Action == task.Nothing:
		case later > 0:
			wait = min(wait, later)
		case d.Action == task.Wait:
			wait = min(wait, max(d.Wait, time.Millisecond))
		default:
			if n := rank(r.ID, ref); best == nil || n < least {
				best, least = e, n
			}
		}
	}
	return best, wait
}

// rank orders tasks, for each worker in another way, so that workers do not all try to
// claim the same task.
func rank(workerID, ref string) uint64 {
	sum := sha256.Sum256([]byte(workerID + "\x00" + ref))
	return binary.BigEndian.Uint64(sum[:])
}

// claim claims a task and starts to work on it. It reports whether it did.
func (r *run) claim(ctx, attempts context.Context, e *entry) bool {
	e.mu.Lock()
	d := e.state.Decide(r.Worker.Worker, time.Since(e.heard))
	ref, last := e.state.Ref, e.state.LastID
	e.mu.Unlock()
	if d.Action != task.Claim && d.Action != task.Supersede {
		return false
	}
	attempt := r.newID()
	p := task.Payload{
		WorkRef: ref, Recipient: r.Recipient, WorkerID: r.ID, AttemptID: attempt,
		Supersedes: d.Supersedes, LeaseSeconds: int(r.lease().Seconds()), Status: string(task.StatusClaimed),
	}
	sent := time.Now()
	id, err := r.Log.Append(ctx, task.Claimed, p, last)
	if err == nil {
		e.apply(task.Event{ID: id, Name: task.Claimed, Payload: p})
	} else {
		if !errors.Is(err, ErrConflict) {
			r.warn("task " + ref + ": cannot claim it: " + err.Error())
			e.mu.Lock()
			e.retry = time.Now().Add(lastWait)
			e.mu.Unlock()
		}
		// The claim may be in the log though the answer was lost.
		_ = r.read(ctx, e, ref)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.state.Holds(attempt) {
		return false
	}
	working, cancel := context.WithCancelCause(attempts)
	e.claim = &Claim{
		run: r, entry: e, attempt: attempt, cancel: cancel, renewed: sent,
		inputs: make(chan Input, inputLimit),
	}
	r.running++
	for _, m := range e.state.Messages {
		e.claim.input(Input{EventID: m.EventID, Text: m.Text})
	}
	go r.work(working, e.claim, ref)
	return true
}

// work works on a claimed task and ends it.
func (r *run) work(ctx context.Context, c *Claim, ref string) {
	defer func() { r.over <- ref }()
	defer c.cancel(nil)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go c.renew(renewing)
	end := r.Handler.Work(ctx, c)
	if cause := context.Cause(ctx); errors.Is(cause, ErrLost) || errors.Is(cause, ErrCanceled) {
		r.warn("task " + ref + ": " + cause.Error())
		return
	}
	ending, release := context.WithTimeout(context.WithoutCancel(ctx), r.lease())
	defer release()
	if err := c.append(ending, end.Name, end.Payload); err != nil {
		r.warn("task " + ref + ": cannot report " + end.Name + ": " + err.Error())
	}
}

// forget records that a task is not worked on any more.
func (r *run) forget(ref string) {
	r.running--
	r.mu.Lock()
	e := r.entries[ref]
	r.mu.Unlock()
	e.mu.Lock()
	e.claim = nil
	e.mu.Unlock()
	r.drop(ref, e)
}

// endAll waits for the running attempts, and after a time tells them to stop.
func (r *run) endAll(after time.Duration) {
	timer := time.NewTimer(after)
	defer timer.Stop()
	for r.running > 0 {
		select {
		case ref := <-r.over:
			r.forget(ref)
		case <-timer.C:
			r.mu.Lock()
			for _, e := range r.entries {
				e.mu.Lock()
				if e.claim != nil {
					e.claim.cancel(ErrStopping)
				}
				e.mu.Unlock()
			}
			r.mu.Unlock()
		}
	}
}

func (r *run) lease() time.Duration {
	if r.Lease > 0 {
		return r.Lease
	}
	return DefaultLease
}

func (r *run) handBack() time.Duration {
	if r.HandBack == 0 {
		return DefaultHandBack
	}
	return max(r.HandBack, 0)
}

func (r *run) newID() string {
	if r.NewID != nil {
		return r.NewID()
	}
	return rand.Text()
}

func (r *run) warn(line string) {
	if r.Warn != nil {
		r.Warn(line)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
