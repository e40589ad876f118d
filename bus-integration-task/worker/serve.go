package worker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/busdk/bus-integration-task/task"
)

// serve claims tasks until ctx ends or the log cannot be followed. Attempts run under
// attempts, and have ended when it returns.
func (r *run) serve(ctx, attempts context.Context, following <-chan error) error {
	began := 0
	idle := time.Now()
	for {
		if ctx.Err() != nil {
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
		more := r.readNew(ctx)
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
		wait = min(wait, more)
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
		case c := <-r.over:
			r.forget(c)
			idle = time.Now()
		case err := <-following:
			r.endAll(0)
			return err
		case <-ctx.Done():
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

// claimLimit bounds the requests of a claim that was begun before the worker was stopped.
const claimLimit = 5 * time.Second

// stopLimit bounds each step of an attempt after its worker had to stop: the end of the
// agent, the removal of the worktree and the report.
const stopLimit = 10 * time.Second

// claim claims a task and starts to work on it. It reports whether it did. A claim that the
// end of ctx interrupts is finished, since it may be in the log, and handed back.
func (r *run) claim(ctx, attempts context.Context, e *entry) bool {
	begun := time.Now()
	e.mu.Lock()
	ref := e.state.Ref
	e.mu.Unlock()
	if err := r.complete(ctx, e, ref); err != nil {
		r.postpone(e, ref, err)
		return false
	}
	e.mu.Lock()
	d := e.state.Decide(r.Worker.Worker, time.Since(e.heard))
	last := e.state.LastID
	e.mu.Unlock()
	if d.Action != task.Claim && d.Action != task.Supersede {
		return false
	}
	attempt := r.newID()
	p := task.Payload{
		WorkRef: ref, Recipient: r.Recipient, WorkerID: r.ID, AttemptID: attempt,
		Supersedes: d.Supersedes, LeaseSeconds: int(r.lease().Seconds()), Status: string(task.StatusClaimed),
	}
	claiming, cancelClaiming := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelClaiming()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(claimLimit, cancelClaiming) })()
	sent := time.Now()
	id, err := r.Log.Append(claiming, task.Claimed, p, last)
	if err == nil || errors.Is(err, ErrConflict) {
		r.claimed(err == nil, time.Since(begun))
	}
	if err == nil {
		e.apply(task.Event{ID: id, Name: task.Claimed, Payload: p})
	} else {
		// The claim may be in the log though the answer was lost.
		r.postpone(e, ref, cmp.Or(r.read(claiming, e, ref), err))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state.LastID != last {
		e.wait, e.retry = 0, time.Time{}
	}
	if !e.state.Holds(attempt) {
		return false
	}
	observed, o := r.observe(attempts, ref, attempt, sent)
	working, cancel := context.WithCancelCause(observed)
	r.logger().Info("task claimed", "task", ref, "attempt", attempt, "round", e.state.Round)
	e.claim = newClaim(r, e, attempt, cancel, sent)
	r.entries[ref] = e // also if it was dropped meanwhile
	delete(r.unread, ref)
	r.running++
	if ctx.Err() != nil {
		cancel(ErrStopping)
	}
	go r.work(working, e.claim, ref, o)
	return true
}

// postpone waits with the next claim of a task, and reports why it cannot be claimed now.
func (r *run) postpone(e *entry, ref string, err error) {
	if !errors.Is(err, ErrConflict) && !errors.Is(err, errBehind) {
		r.warn("task " + ref + ": cannot claim it: " + err.Error())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wait = min(max(2*e.wait, firstWait), lastWait)
	e.retry = time.Now().Add(e.wait)
}

// bounded returns a context for what must be done after an attempt, also if that was
// stopped. It ends after limit, or sooner if the worker is stopping.
func bounded(attempt context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(attempt), limit)
	unwatch := context.AfterFunc(attempt, func() {
		if errors.Is(context.Cause(attempt), ErrStopping) {
			time.AfterFunc(stopLimit, cancel)
		}
	})
	return ctx, func() { unwatch(); cancel() }
}

// work works on a claimed task and ends it.
func (r *run) work(ctx context.Context, c *Claim, ref string, o *observation) {
	defer func() { r.over <- c }()
	var group sync.WaitGroup
	defer group.Wait()
	defer c.cancel(nil)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group.Go(func() { c.renew(renewing) })
	group.Go(func() { c.feed(ctx) })
	end := End{Name: task.Released, Payload: task.Payload{Text: "handed back: " + ErrStopping.Error()}}
	if ctx.Err() == nil {
		end = r.Handler.Work(ctx, c)
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrLost) || errors.Is(cause, ErrCanceled) {
		r.warn("task " + ref + ": " + cause.Error())
		o.end(ctx, lost, end.Payload)
		return
	}
	ending, release := bounded(ctx, r.lease())
	defer release()
	err := c.append(ending, end.Name, end.Payload)
	if isInvalid(err) {
		r.warn("task " + ref + ": cannot report " + end.Name + " in full: " + err.Error())
		end = End{Name: end.Name, Payload: task.Payload{
			Text: "the report of the attempt cannot be read: " + err.Error(), Status: end.Payload.Status, Commit: end.Payload.Commit,
		}}
		if !isEnd(end.Name) {
			end.Name, end.Payload.Status = task.Failed, string(task.StatusFailed)
		}
		err = c.append(ending, end.Name, end.Payload)
	}
	if err != nil {
		r.warn("task " + ref + ": cannot report " + end.Name + ": " + err.Error())
		o.end(ctx, lost, end.Payload)
		return
	}
	o.end(ctx, end.Name, end.Payload)
	r.logger().Info("attempt ended", "task", ref, "attempt", c.attempt, "as", end.Name, "text", end.Payload.Text, "commit", end.Payload.Commit)
}

// forget records that a claimed task is not worked on any more.
func (r *run) forget(c *Claim) {
	r.running--
	e := c.entry
	e.mu.Lock()
	e.claim = nil
	ref := e.state.Ref
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
		case c := <-r.over:
			r.forget(c)
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

// lease is the lease that claims announce, of which the other workers take no more than
// task.MaxLease.
func (r *run) lease() time.Duration {
	if r.Lease <= 0 {
		return DefaultLease
	}
	return max(min(r.Lease, task.MaxLease).Truncate(time.Second), time.Second)
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
