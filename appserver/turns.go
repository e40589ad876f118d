package appserver

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/busdk/bus-agent/session/jsonrpc"
)

// maxPast is how many turns that are over are remembered.
const maxPast = 64

// turns knows which turn of a thread was begun here. A server
// says so in its answer to turn/start and in the notifications turn/started and
// turn/completed, any of which can come first, come twice or be missing. Its
// methods may be called concurrently.
type turns struct {
	mu        sync.Mutex
	running   string
	beginning *beginning
	named     string        // the last turn that turn/started has named
	changed   chan struct{} // closed at the next change; nil while nothing waits for it
	past      []string      // that are over or were given up
}

// beginning is a turn/start.
type beginning struct {
	turn   string // empty while it is not known
	known  func() // bounds the waiting for the answer
	seen   bool   // a turn has begun, whatever its ID
	gaveUp bool   // the turn is not wanted any more
}

// begin records a turn/start. A turn that runs by then is not its turn.
func (t *turns) begin(known func()) *beginning {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(t.running)
	t.beginning = &beginning{known: known}
	return t.beginning
}

// begun ends the waiting for b, which ended with err, and reports whether its
// turn has begun.
func (t *turns) begun(b *beginning, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.beginning == b {
		t.beginning = nil
	}
	if _, refused := errors.AsType[*jsonrpc.Error](err); refused {
		return false // what was seen is another turn
	}
	b.gaveUp = err != nil && !b.seen
	return !b.gaveUp
}

// answered takes the ID of the turn of b, and reports whether that
// turn was given up.
func (t *turns) answered(b *beginning, id string) (unwanted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.gaveUp {
		t.forget(id)
		return true
	}
	if b.turn != id && t.running == b.turn { // what began before was another turn
		t.running = id
		t.past = slices.DeleteFunc(t.past, func(p string) bool { return p == id })
	}
	b.turn, b.seen = id, true
	if t.beginning == b {
		t.beginning = nil // nothing more is to be known
	}
	return false
}

// started records that a turn has begun.
func (t *turns) started(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id == "" || slices.Contains(t.past, id) {
		return
	}
	if t.running == "" {
		t.running = id
	}
	t.named = id
	t.change()
	if b := t.beginning; b != nil && t.running == id {
		if !b.seen {
			b.turn, b.seen = id, true
		}
		b.known()
	}
}

// completed records that a turn is over and reports whether it is the one
// that was begun here. Without an ID it is.
func (t *turns) completed(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id != "" && (slices.Contains(t.past, id) || t.running != "" && t.running != id) {
		return false
	}
	t.forget(id)
	t.running = ""
	t.change()
	if b := t.beginning; b != nil {
		if !b.seen {
			b.turn, b.seen = id, true
		}
		b.known()
	}
	return true
}

// current returns the turn that is running, empty when there is none.
func (t *turns) current() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running
}

// hasBegun reports whether turn/started has named a turn.
func (t *turns) hasBegun(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.named == id
}

// waitBegun waits until turn/started has named the running turn, or until that turn or
// the connection is over.
func (t *turns) waitBegun(ctx context.Context, closed <-chan struct{}, id string) error {
	for {
		t.mu.Lock()
		if t.named == id || t.running != id {
			t.mu.Unlock()
			return nil
		}
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-closed:
			return jsonrpc.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// change notifies those who wait for a change; t.mu is held.
func (t *turns) change() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// forget adds a turn to those that are past.
func (t *turns) forget(id string) {
	if t.running == id {
		t.running = ""
	}
	if id == "" || slices.Contains(t.past, id) {
		return
	}
	if len(t.past) == maxPast {
		t.past = slices.Delete(t.past, 0, 1)
	}
	t.past = append(t.past, id)
}
