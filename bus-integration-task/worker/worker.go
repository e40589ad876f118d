package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/busdk/bus-integration-task/task"
)

// Defaults of [Worker].
const (
	DefaultLease    = time.Minute
	DefaultHandBack = 20 * time.Second
)

// StopLimit is how long Run may take, after its context has ended and HandBack is over.
const StopLimit = claimLimit + 3*stopLimit

// Causes with which the context of [Handler.Work] ends.
var (
	ErrLost     = errors.New("the claim was lost")
	ErrCanceled = errors.New("the task was canceled")
	ErrStopping = errors.New("the worker is stopping")
)

// A Handler does the work of a task.
type Handler interface {
	// Work works on a task until it is over or ctx ends, and returns how the attempt
	// ended. The cause of ctx is ErrLost, ErrCanceled or ErrStopping; after the first two
	// the result is ignored, and Work must not change anything but what it has made for
	// the attempt. Work returns soon after ctx has ended.
	Work(ctx context.Context, c *Claim) End
}

// An End is how an attempt ended.
type End struct {
	// Name is task.Done, task.Blocked or task.Failed, or task.Released for a task that
	// another worker may take up.
	Name string
	// Payload is what to report. The worker fills in the task and the attempt.
	Payload task.Payload
}

// A Worker claims the tasks of one recipient. Fields may not change while Run runs.
type Worker struct {
	task.Worker

	Log     Log
	Handler Handler

	// Lease is how long a claim is valid without renewal, in whole seconds from 1 to
	// task.MaxLease; 0 is DefaultLease. It is renewed three times as often. At least 3
	// seconds are usual.
	Lease time.Duration
	// Parallel is the number of tasks to work on at once; 0 is 1.
	Parallel int
	// Once ends Run after one task.
	Once bool
	// IdleTimeout ends Run when there was nothing to do for so long; 0 is never.
	IdleTimeout time.Duration
	// HandBack bounds how long a running attempt may still take when the context of
	// Run ends, before it has to stop; 0 is DefaultHandBack, negative is at once.
	// See StopLimit for the time after that.
	HandBack time.Duration
	// Hurry, if not nil, ends the time of HandBack when it is closed.
	Hurry <-chan struct{}

	// NewID returns an ID for an attempt, unique among all workers. Nil makes random ones.
	NewID func() string
	// Logger gets what the worker does, what went wrong and was dealt with, and at
	// [LevelTrace] every event of the log. Nil drops them.
	Logger *slog.Logger
	// Tracers and Meters get a span and a duration for each attempt. Nil are the global
	// providers.
	Tracers trace.TracerProvider
	Meters  metric.MeterProvider
}

// Run claims tasks and works on them until ctx ends, which is not an error, or the log
// refuses the caller. Running attempts are finished or handed back before it returns.
func (w *Worker) Run(ctx context.Context) error {
	r := w.newRun()
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan error, 1)
	var reading sync.WaitGroup
	reading.Go(func() { ended <- w.Log.Follow(following, r.event, r.caughtUp) })
	err := r.serve(ctx, following, ended)
	stop()
	reading.Wait()
	if err != nil {
		err = fmt.Errorf("worker %s: %w", w.ID, err)
	}
	return err
}

// run is one call of Run.
type run struct {
	*Worker
	changed chan struct{} // gets a token when an entry has changed
	over    chan *Claim   // gets a claim whose task is not worked on any more
	running int           // of serve alone

	mu        sync.Mutex
	ready     bool // the log has been read to its end once
	entries   map[string]*entry
	unread    map[string]unread // tasks without an entry that may have become the recipient's
	contender *task.Contender
	roundTrip time.Duration // see task.Contender
}

func (w *Worker) newRun() *run {
	return &run{
		Worker: w, entries: make(map[string]*entry), unread: make(map[string]unread),
		contender: task.NewContender(w.ID), roundTrip: firstRoundTrip,
		changed: make(chan struct{}, 1), over: make(chan *Claim),
	}
}

// An entry is a task of the recipient that has not ended.
type entry struct {
	mu    sync.Mutex
	state task.State
	whole bool      // the state is of all events, from the first
	last  time.Time // when the latest event that counts was received
	heard time.Time // the same of the current attempt
	claim *Claim    // nil if this worker does not work on it

	retry time.Time     // not to be claimed before
	wait  time.Duration // after the latest claim, if it failed and nothing was learned
}

// event is called for every event of the log. A task for the recipient is followed from
// its creation. One that is assigned to it or reopened is read later as a whole, since
// tasks of others and those that have ended are not kept.
func (r *run) event(e task.Event) error {
	if log := r.logger(); log.Enabled(context.Background(), LevelTrace) {
		log.Log(context.Background(), LevelTrace, "event", "id", e.ID, "name", e.Name, "task", e.WorkRef, "attempt", e.AttemptID, "text", oneLine(e.Text))
	}
	r.mu.Lock()
	known := r.entries[e.WorkRef]
	if known == nil && e.Name == task.Created && e.Recipient == r.Recipient {
		known = &entry{}
		r.entries[e.WorkRef] = known
	}
	if known != nil && e.Name == task.Claimed {
		r.contender.Saw(e.WorkerID)
	}
	if known == nil && (e.Name == task.Reopened || e.Name == task.Assigned) && (e.Recipient == "" || e.Recipient == r.Recipient) {
		r.unread[e.WorkRef] = unread{}
		r.notify()
	}
	r.mu.Unlock()
	if known != nil && known.apply(e) {
		r.drop(e.WorkRef, known)
		r.notify()
	}
	return nil
}

func (r *run) caughtUp() {
	r.mu.Lock()
	r.ready = true
	r.mu.Unlock()
	r.notify()
}

func (r *run) notify() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// drop forgets a task that is not one to claim any more.
func (r *run) drop(ref string, e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.claim == nil && r.entries[ref] == e && (e.state.Status.Ended() || e.state.Recipient != r.Recipient) {
		delete(r.entries, ref)
	}
}

// An unread is a task to be read.
type unread struct {
	at   time.Time     // not before
	wait time.Duration // after the latest failure
}

// readAtOnce is how many tasks are read before the next claim.
const readAtOnce = 16

// readNew reads some of the tasks that may have become the recipient's. It returns how long
// to wait before it is called again.
func (r *run) readNew(ctx context.Context) time.Duration {
	due, wait := r.dueToRead()
	for _, ref := range due {
		e := &entry{whole: true}
		err := r.read(ctx, e, ref)
		r.mu.Lock()
		switch u := r.unread[ref]; {
		case err != nil:
			u.wait = min(max(2*u.wait, lastWait), longWait)
			u.at = time.Now().Add(u.wait)
			r.unread[ref] = u
			wait = min(wait, u.wait)
		default:
			delete(r.unread, ref)
			if r.entries[ref] == nil {
				r.entries[ref] = e
			}
		}
		r.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			r.warn("task " + ref + ": cannot read it: " + err.Error())
		}
		r.drop(ref, e)
	}
	return wait
}

// dueToRead returns some of the tasks to read now, and how long until there are more.
func (r *run) dueToRead() (due []string, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait = longWait
	if !r.ready {
		return nil, wait
	}
	for ref, u := range r.unread {
		switch left := time.Until(u.at); {
		case left > 0:
			wait = min(wait, left)
		case len(due) == readAtOnce:
			return due, 0
		default:
			due = append(due, ref)
		}
	}
	return due, wait
}

// read applies the events of a task that it has not seen.
func (r *run) read(ctx context.Context, e *entry, ref string) error {
	e.mu.Lock()
	last := e.state.LastID
	e.mu.Unlock()
	err := r.Log.Read(ctx, ref, last, func(event task.Event) error {
		e.apply(event)
		return nil
	})
	r.drop(ref, e) // the stream may never show what has ended it as news
	return err
}

// errBehind is the error of a reading without the latest events.
var errBehind = errors.New("the server that answered lacks its latest events")

// complete reads a task from its first event, unless that was done. The stream does not
// show which event is the first: a task that was dropped may be created again, which its
// other readers ignore.
func (r *run) complete(ctx context.Context, e *entry, ref string) error {
	e.mu.Lock()
	whole := e.whole
	e.mu.Unlock()
	if whole {
		return nil
	}
	all := &entry{}
	if err := r.read(ctx, all, ref); err != nil {
		return err
	}
	e.mu.Lock()
	behind := all.state.LastID < e.state.LastID
	if !behind {
		if all.state.Attempt.LastID != e.state.Attempt.LastID {
			e.heard = all.heard
		}
		e.state, e.whole = all.state, true
	}
	e.mu.Unlock()
	if behind {
		return errBehind
	}
	r.drop(ref, e)
	return nil
}

// apply applies an event to the task, and passes on what concerns who works on it. It
// reports whether the event counted.
func (e *entry) apply(event task.Event) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	change := e.state.Apply(event)
	if change.Applied() {
		e.last = time.Now()
	}
	if change.Renewed {
		e.heard = e.last
	}
	if e.claim != nil {
		e.claim.pass(change, event)
	}
	return change.Applied()
}
