package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// An Event is what happened in a session.
type Event string

// The events.
const (
	SessionStart Event = "SessionStart"
	SessionStop  Event = "SessionStop"
	OnMessage    Event = "OnMessage" // the agent has got a message
	OnError      Event = "OnError"   // a turn or the session has failed
)

// A Payload is one event of a session. Its JSON form is that of the specification:
// every member is always present, and the time is in RFC 3339, UTC.
type Payload struct {
	Event     Event             `json:"event"`
	Runtime   string            `json:"runtime"`
	SessionID string            `json:"session_id"`
	Workdir   string            `json:"workdir"`
	Rig       string            `json:"rig"`
	Role      string            `json:"role"`
	Bead      string            `json:"bead"`
	Actor     string            `json:"actor"`
	Timestamp Timestamp         `json:"timestamp"`
	Data      map[string]string `json:"data"`
}

// A Timestamp is a time with the JSON form of payloads.
type Timestamp struct{ time.Time }

// MarshalJSON writes the time in UTC, in seconds.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	return json.Marshal(t.UTC().Format(time.RFC3339))
}

// JSON returns the payload in one line, without a line break.
func (p Payload) JSON() ([]byte, error) {
	if p.Data == nil {
		p.Data = map[string]string{}
	}
	return json.Marshal(p)
}

// A Sink receives the events of sessions, one at a time and in order.
type Sink interface {
	// Deliver receives an event. It returns when ctx ends.
	Deliver(ctx context.Context, p Payload) error
	// String names the sink in warnings.
	String() string
}

const (
	// maxPending is how many events wait for a sink before further ones are lost.
	maxPending = 1000
	// deliverLimit bounds the delivery of one event.
	deliverLimit = time.Minute
)

// A Hooks passes events on to sinks. It never waits for a sink, and warns once
// about a sink that fails. A nil Hooks has no sinks. Its methods may be called
// concurrently.
type Hooks struct {
	warn  func(string)
	sinks []*queue
	ctx   context.Context // of deliveries
	end   context.CancelCauseFunc
}

// NewHooks returns a Hooks with these sinks. warn receives each problem as one
// line, from any goroutine; it may be nil.
func NewHooks(warn func(string), sinks ...Sink) *Hooks {
	h := &Hooks{warn: warn}
	h.ctx, h.end = context.WithCancelCause(context.Background())
	for _, s := range sinks {
		q := &queue{hooks: h, sink: s, idle: make(chan struct{})}
		close(q.idle)
		h.sinks = append(h.sinks, q)
	}
	return h
}

// Emit passes an event on, and returns at once.
func (h *Hooks) Emit(p Payload) {
	if h == nil {
		return
	}
	for _, q := range h.sinks {
		q.add(p)
	}
}

// Flush waits until every sink has taken the events up to now, or until ctx ends.
func (h *Hooks) Flush(ctx context.Context) error {
	if h == nil {
		return nil
	}
	for _, q := range h.sinks {
		select {
		case <-q.whenIdle():
		case <-ctx.Done():
			return fmt.Errorf("hook %s has not taken all events: %w", q.sink, context.Cause(ctx))
		}
	}
	return nil
}

// errClosed ends deliveries and is the failure of those that never begin.
var errClosed = errors.New("it has not taken all events before the end")

// Close waits like Flush. It then cancels deliveries in progress, discards waiting
// events with a warning, and returns when every sink has returned, so that a sink
// that follows the rules of [Sink] is not running afterwards. It closes sinks that
// are an io.Closer. Later events are discarded.
func (h *Hooks) Close(ctx context.Context) {
	if h == nil {
		return
	}
	_ = h.Flush(ctx) // each sink that is given up is warned of
	h.end(errClosed)
	for _, q := range h.sinks {
		<-q.whenIdle()
		if c, ok := q.sink.(io.Closer); ok {
			_ = c.Close() // each line was written by itself
		}
	}
}

// queue holds the events that wait for one sink. A goroutine works on it while
// there are any.
type queue struct {
	hooks *Hooks
	sink  Sink

	mu      sync.Mutex
	pending []Payload
	idle    chan struct{} // closed while no goroutine works on it
	busy    bool
	warned  bool
}

// whenIdle returns a channel that is closed when the events up to now are taken.
func (q *queue) whenIdle() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.idle
}

func (q *queue) add(p Payload) {
	q.mu.Lock()
	full := len(q.pending) >= maxPending
	if !full {
		q.pending = append(q.pending, p)
		if !q.busy {
			q.busy, q.idle = true, make(chan struct{})
			go q.work()
		}
	}
	q.mu.Unlock()
	if full {
		q.fail(fmt.Errorf("it does not keep up; events are left out"))
	}
}

func (q *queue) work() {
	for {
		q.mu.Lock()
		if len(q.pending) == 0 {
			q.busy, q.pending = false, nil
			close(q.idle)
			q.mu.Unlock()
			return
		}
		p := q.pending[0]
		q.pending = q.pending[1:]
		q.mu.Unlock()
		if err := q.deliver(p); err != nil {
			q.fail(err)
		}
	}
}

// deliver delivers an event. A sink that panics fails alone.
func (q *queue) deliver(p Payload) (err error) {
	if q.hooks.ctx.Err() != nil {
		return errClosed
	}
	ctx, cancel := context.WithTimeout(q.hooks.ctx, deliverLimit)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
	}()
	return q.sink.Deliver(ctx, p)
}

// fail warns of the first failure.
func (q *queue) fail(err error) {
	q.mu.Lock()
	first := !q.warned
	q.warned = true
	q.mu.Unlock()
	if first && q.hooks.warn != nil {
		q.hooks.warn(fmt.Sprintf("hook %s failed (further failures not shown): %v", q.sink, err))
	}
}
