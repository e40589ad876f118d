package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
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
			if r.running > 0 {
				text := "stopping; running attempts that do not end in time are handed back"
				if r.Hurry != nil {
					text += "; repeat the signal to hand them back now"
				}
				r.logger().Info(text, "attempts", r.running, "time", r.handBack().String())
			}
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
	type open struct {
		entry *entry
		since string
	}
	var ready []open
	for _, e := range r.entries {
		e.mu.Lock()
		d := e.state.Decide(r.Worker.Worker, time.Since(e.heard))
		at, since := e.last, e.state.OpenedID
		if d.Action == task.Supersede {
			at = e.heard.Add(e.state.Attempt.Lease)
		}
		at = at.Add(r.contender.Wait(e.state.LastID, r.roundTrip))
		if e.retry.After(at) {
			at = e.retry
		}
		free := e.claim == nil
		e.mu.Unlock()
		later := time.Until(at)
		switch {
		case !free || d.Action == task.Nothing:
		case d.Action == task.Wait:
			wait = min(wait, max(d.Wait, time.Millisecond))
		case later > 0:
			wait = min(wait, later)
		default:
			ready = append(ready, open{e, since})
		}
	}
	if len(ready) == 0 {
		return nil, wait
	}
	slices.SortFunc(ready, func(a, b open) int { return strings.Compare(a.since, b.since) })
	return ready[r.contender.Choose(len(ready))].entry, 0
}

// Bounds of the time from a claim to its receipt by the other workers, which is taken for
// twice the time of the latest claim.
const (
	firstRoundTrip = 20 * time.Millisecond
	leastRoundTrip = 5 * time.Millisecond
	mostRoundTrip  = 500 * time.Millisecond
)

// claimed records the outcome of a claim.
func (r *run) claimed(won bool, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roundTrip = min(max(2*took, leastRoundTrip), mostRoundTrip)
	if won {
		r.contender.Won()
	} else {
		r.contender.Lost()
	}
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
	if err == nil || errors.Is(err, ErrConflict) {
		r.claimed(err == nil, time.Since(sent))
	}
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
	observed, o := r.observe(attempts, ref, attempt, sent)
	working, cancel := context.WithCancelCause(observed)
	r.logger().Info("task claimed", "task", ref, "attempt", attempt, "round", e.state.Round)
	e.claim = &Claim{
		run: r, entry: e, attempt: attempt, cancel: cancel, renewed: sent,
		inputs: make(chan Input, inputLimit),
	}
	r.running++
	for _, m := range e.state.Messages {
		e.claim.input(Input{EventID: m.EventID, Text: m.Text})
	}
	go r.work(working, e.claim, ref, o)
	return true
}

// work works on a claimed task and ends it.
func (r *run) work(ctx context.Context, c *Claim, ref string, o *observation) {
	defer func() { r.over <- ref }()
	defer c.cancel(nil)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go c.renew(renewing)
	end := r.Handler.Work(ctx, c)
	if cause := context.Cause(ctx); errors.Is(cause, ErrLost) || errors.Is(cause, ErrCanceled) {
		r.warn("task " + ref + ": " + cause.Error())
		o.end(ctx, lost, end.Payload)
		return
	}
	ending, release := context.WithTimeout(context.WithoutCancel(ctx), r.lease())
	defer release()
	if err := c.append(ending, end.Name, end.Payload); err != nil {
		r.warn("task " + ref + ": cannot report " + end.Name + ": " + err.Error())
		o.end(ctx, lost, end.Payload)
		return
	}
	o.end(ctx, end.Name, end.Payload)
	r.logger().Info("attempt ended", "task", ref, "attempt", c.attempt, "as", end.Name, "text", end.Payload.Text, "commit", end.Payload.Commit)
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

// endAll waits for the running attempts, and stops them after a time.
func (r *run) endAll(after time.Duration) {
	timer := time.NewTimer(after)
	defer timer.Stop()
	hurry := r.Hurry
	for r.running > 0 {
		select {
		case ref := <-r.over:
			r.forget(ref)
		case <-timer.C:
			r.stopAll()
		case <-hurry:
			hurry = nil
			r.stopAll()
		}
	}
}

// stopAll stops the running attempts.
func (r *run) stopAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		e.mu.Lock()
		if e.claim != nil {
			e.claim.cancel(ErrStopping)
		}
		e.mu.Unlock()
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

func (r *run) warn(line string) { r.logger().Warn(line) }

func (r *run) logger() *slog.Logger { return loggerOr(r.Logger) }

// loggerOr returns a logger, or one that drops everything.
func loggerOr(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
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
