// Package memorybus is a bus of events in memory, for tests.
package memorybus

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/busdk/bus-integration-task/events"
)

// A Bus keeps all events. The zero value is empty. Its methods may be called
// concurrently.
type Bus struct {
	mu      sync.Mutex
	log     []events.Event
	groups  map[string]int // position of unicast groups
	changed chan struct{}  // closed at the next event
}

// Publish appends an event.
func (b *Bus) Publish(ctx context.Context, d events.Draft) (events.Published, error) {
	if err := ctx.Err(); err != nil {
		return events.Published{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	id := events.FormatID(uint64(len(b.log)) + 1)
	b.log = append(b.log, events.Event{
		Version: "v1", ID: id, Name: d.Name, CorrelationID: d.CorrelationID, Source: d.Source, Timestamp: time.Now(),
		Metadata: d.Metadata, Payload: d.Payload, Error: d.Error,
	})
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
	return events.Published{ID: id, Name: d.Name}, nil
}

// Events returns the events with a name.
func (b *Bus) Events(name string) []events.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.log), func(e events.Event) bool { return e.Name != name })
}

// Stream follows the log, as events.Client does. WorkRef, Consumer and Once have no
// effect.
func (b *Bus) Stream(ctx context.Context, q events.Query, handle func(events.Event) error) error {
	b.mu.Lock()
	position := len(b.log)
	if q.Replay {
		position = 0
	}
	if after, ok := events.ParseID(q.AfterID); ok {
		position = int(after)
	}
	if b.groups == nil {
		b.groups = map[string]int{}
	}
	if _, ok := b.groups[q.Group]; !ok && q.Delivery == events.Unicast {
		b.groups[q.Group] = position
	}
	b.mu.Unlock()
	caughtUp := q.CaughtUp
	for {
		e, changed := b.next(&q, &position)
		switch {
		case e == nil:
			if caughtUp != nil {
				caughtUp()
				caughtUp = nil
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
		case ctx.Err() != nil:
			return ctx.Err()
		case slices.Contains(q.Names, e.Name):
			if err := handle(*e); err != nil {
				return err
			}
		}
	}
}

// next returns the next event and moves the position, or the channel that is closed when
// there is one.
func (b *Bus) next(q *events.Query, position *int) (*events.Event, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := *position
	if q.Delivery == events.Unicast {
		at = b.groups[q.Group]
	}
	if at == len(b.log) {
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		return nil, b.changed
	}
	e := b.log[at]
	if q.Delivery == events.Unicast {
		b.groups[q.Group] = at + 1
	}
	*position = at + 1
	return &e, nil
}
