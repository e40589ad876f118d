package board

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/task"
)

// memory is a log in memory.
type memory struct {
	mu      sync.Mutex
	events  []task.Event
	changed chan struct{} // closed at each event
	fail    error         // of all methods
	noTask  error         // of Task
}

var begin = time.Date(2026, 6, 5, 9, 0, 0, 0, time.UTC)

func newMemory() *memory { return &memory{changed: make(chan struct{})} }

// add appends an event a second after the one before.
func (m *memory) add(name string, p task.Payload) task.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.events) + 1
	e := task.Event{ID: fmt.Sprintf("evt_%019d", n), Name: name, Source: "test", Time: begin.Add(time.Duration(n) * time.Second), Payload: p}
	m.events = append(m.events, e)
	close(m.changed)
	m.changed = make(chan struct{})
	return e
}

func (m *memory) Follow(ctx context.Context, each func(task.Event), _ func(), _ func(error)) error {
	for at := 0; ; {
		m.mu.Lock()
		events, changed, err := m.events[at:], m.changed, m.fail
		m.mu.Unlock()
		if err != nil {
			return err
		}
		for _, e := range events {
			each(e)
		}
		at += len(events)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

func (m *memory) Task(_ context.Context, ref string, each func(task.Event)) error {
	m.mu.Lock()
	events, err := slices.Clone(m.events), m.noTask
	m.mu.Unlock()
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.WorkRef == ref {
			each(e)
		}
	}
	return nil
}

func (m *memory) Publish(_ context.Context, name string, p task.Payload) error {
	m.mu.Lock()
	err := m.fail
	m.mu.Unlock()
	if err == nil {
		m.add(name, p)
	}
	return err
}

// failWith makes all methods fail, also the one that follows now; nil ends that.
func (m *memory) failWith(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
	close(m.changed)
	m.changed = make(chan struct{})
}

// last returns the latest event.
func (m *memory) last() task.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.events[len(m.events)-1]
}

func (m *memory) create(ref, recipient, text string) {
	m.add(task.Created, task.Payload{WorkRef: ref, Recipient: recipient, Text: text, Sender: "busdk"})
}

func (m *memory) claim(ref, worker string) task.Payload {
	p := task.Payload{WorkRef: ref, WorkerID: worker, AttemptID: ref + "/" + worker, LeaseSeconds: 60}
	m.add(task.Claimed, p)
	return p
}

// folded returns the tasks of a log as the board has them.
func folded(m *memory, maxEnded, maxOpen int) *tasks {
	b := newTasks(maxEnded, maxOpen)
	for _, e := range m.events {
		b.apply(e)
	}
	return b
}

func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
