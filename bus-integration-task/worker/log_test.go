package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker"
)

// memoryLog is a log in memory.
type memoryLog struct {
	mu      sync.Mutex
	grown   chan struct{} // closed when an event is added
	events  []task.Event
	offline func(name string) error // called before an append
	stamp   func() time.Time        // time of an event; nil leaves it out
	unsure  func(name string) bool  // reports whether the answer of an append is lost
	cut     func(read int) error    // called in a read, with the number of events that it has delivered
	late    int                     // reads that do not have the latest event
	reads   map[string]int          // of each task
	hold    func(task.Event) bool   // whether Follow delivers an event, and those after it, never
}

func newLog() *memoryLog {
	return &memoryLog{grown: make(chan struct{}), reads: make(map[string]int)}
}

func (l *memoryLog) Follow(ctx context.Context, each func(task.Event) error, caughtUp func()) error {
	l.mu.Lock()
	first := len(l.events)
	l.mu.Unlock()
	if first == 0 {
		caughtUp()
	}
	for n := 0; ; n++ {
		for {
			l.mu.Lock()
			grown, more := l.grown, n < len(l.events)
			l.mu.Unlock()
			if more {
				break
			}
			select {
			case <-grown:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		l.mu.Lock()
		e := l.events[n]
		l.mu.Unlock()
		if l.hold != nil && l.hold(e) {
			<-ctx.Done()
			return ctx.Err()
		}
		if err := each(e); err != nil {
			return err
		}
		if n+1 == first {
			caughtUp()
		}
	}
}

func (l *memoryLog) Read(_ context.Context, ref, after string, each func(task.Event) error) error {
	l.mu.Lock()
	l.reads[ref]++
	events, cut := l.events, l.cut
	if l.late > 0 {
		events = events[:len(events)-1]
		l.late--
	}
	l.mu.Unlock()
	read := 0
	for _, e := range events {
		if e.WorkRef != ref || e.ID <= after {
			continue
		}
		if cut != nil {
			if err := cut(read); err != nil {
				return err
			}
		}
		if err := each(e); err != nil {
			return err
		}
		read++
	}
	return nil
}

func (l *memoryLog) Append(_ context.Context, name string, p task.Payload, last string) (string, error) {
	l.mu.Lock()
	offline := l.offline
	l.mu.Unlock()
	if offline != nil {
		if err := offline(name); err != nil {
			return "", err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	latest := ""
	for _, e := range l.events {
		if e.WorkRef == p.WorkRef {
			latest = e.ID
		}
	}
	if latest != last {
		return "", fmt.Errorf("%w: %s is not %s", worker.ErrConflict, last, latest)
	}
	id := l.add(name, p)
	if l.unsure != nil && l.unsure(name) {
		return "", errors.New("connection reset")
	}
	return id, nil
}

// fail replaces what makes reads and appends fail, while the log is used.
func (l *memoryLog) fail(cut func(int) error, offline func(string) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.offline = cut, offline
}

// post adds an event of a user.
func (l *memoryLog) post(name string, p task.Payload) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(name, p)
}

func (l *memoryLog) add(name string, p task.Payload) string {
	id := fmt.Sprintf("evt_%019d", len(l.events)+1)
	e := task.Event{ID: id, Name: name, Payload: p}
	if l.stamp != nil {
		e.Time = l.stamp()
	}
	l.events = append(l.events, e)
	close(l.grown)
	l.grown = make(chan struct{})
	return id
}

// state returns the state of a task.
func (l *memoryLog) state(ref string) task.State {
	var s task.State
	_ = l.Read(context.Background(), ref, "", func(e task.Event) error { s.Apply(e); return nil })
	return s
}

// count returns the number of events of a task with a name.
func (l *memoryLog) count(ref, name string) int {
	n := 0
	_ = l.Read(context.Background(), ref, "", func(e task.Event) error {
		if e.Name == name {
			n++
		}
		return nil
	})
	return n
}
