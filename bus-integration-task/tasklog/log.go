// Package tasklog reads and appends the events of tasks over the Bus Events HTTP API.
package tasklog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/task"
)

// ErrConflict is in the error of [Log.Append] if the task has a later event than the
// caller has seen.
var ErrConflict = events.ErrConflict

// names are the events to read. The log knows no task of events with the older names, which
// are therefore left out everywhere.
var names = slices.DeleteFunc(task.Names(), func(name string) bool { return !strings.HasPrefix(name, "bus.task.") })

// ends are the events after which a task needs nothing more.
var ends = []string{task.Done, task.Blocked, task.Failed, task.Canceled, task.Closed}

// A Log is the log of all tasks that the token of its client may read. Its methods can be
// called concurrently.
type Log struct {
	Client *events.Client
	// Open leaves out of Follow and All the tasks that had ended before, if their end was
	// appended on a condition. The order of earlier events is then only that of each task,
	// and some can come twice.
	Open bool
	// Skipped, if set, is called with the reason for each event that is not one of a
	// task, though its name is. Such events are otherwise ignored.
	Skipped func(error)
	// Disconnected, if set, is called once for each time that Follow or Watch has lost the
	// server and reconnects, and while the server has not been reached yet.
	Disconnected func(error)
}

// Follow calls each for every event of every task in the order of the log, and caughtUp
// after those that were in the log when Follow was called, and after each reconnect. It
// returns when ctx ends, when each fails, or when the server refuses the token.
func (l *Log) Follow(ctx context.Context, each func(task.Event) error, caughtUp func()) error {
	return l.stream(ctx, events.Query{Replay: true, CaughtUp: caughtUp}, each)
}

// All calls each for the events of all tasks that are in the log, in order.
func (l *Log) All(ctx context.Context, each func(task.Event) error) error {
	return l.stream(ctx, events.Query{Replay: true, Once: true}, each)
}

// Read calls each for the events of one task after the event with the ID after, in order.
// "" is before the first. It returns when all that are in the log have been read.
func (l *Log) Read(ctx context.Context, ref, after string, each func(task.Event) error) error {
	return l.stream(ctx, events.Query{WorkRef: ref, Replay: true, AfterID: after, Once: true}, each)
}

// Watch is Read that continues with new events, and returns as Follow does.
func (l *Log) Watch(ctx context.Context, ref, after string, each func(task.Event) error) error {
	return l.stream(ctx, events.Query{WorkRef: ref, Replay: true, AfterID: after}, each)
}

func (l *Log) stream(ctx context.Context, q events.Query, each func(task.Event) error) error {
	q.Names = names
	if l.Open && q.WorkRef == "" {
		q.Settled = ends
	}
	client := *l.Client
	client.Retry.Disabled = client.Retry.Disabled || q.Once // the caller waits for a result
	lost, caughtUp := false, q.CaughtUp
	q.Disconnected = func(err error, _ time.Duration) {
		if !lost && l.Disconnected != nil {
			l.Disconnected(err)
		}
		lost = true
	}
	q.CaughtUp = func() {
		lost = false
		if caughtUp != nil {
			caughtUp()
		}
	}
	return client.Stream(ctx, q, func(e events.Event) error {
		lost = false
		decoded, err := task.Decode(e.ID, e.Name, e.Source, e.Timestamp, e.Payload)
		if errors.Is(err, task.ErrInvalid) {
			if l.Skipped != nil {
				l.Skipped(fmt.Errorf("event %s: %w", e.ID, err))
			}
			return nil
		}
		if err != nil {
			return err
		}
		return each(decoded)
	})
}

// Append appends an event of the task p.WorkRef and returns its ID, if last is the ID of
// the task's latest event, and otherwise fails with ErrConflict. "" stands for a task
// without events. It fails with [task.ErrInvalid] and sends nothing if readers of the task
// would ignore the event because of its content. After any other error the event may be in
// the log.
func (l *Log) Append(ctx context.Context, name string, p task.Payload, last string) (id string, err error) {
	draft, err := draftOf(name, p)
	if err != nil {
		return "", err
	}
	published, err := l.Client.Append(ctx, draft, last)
	return published.ID, err
}

// Add appends an event of the task p.WorkRef whatever its latest event is. Otherwise it is
// like Append.
func (l *Log) Add(ctx context.Context, name string, p task.Payload) (id string, err error) {
	draft, err := draftOf(name, p)
	if err != nil {
		return "", err
	}
	published, err := l.Client.Publish(ctx, draft)
	return published.ID, err
}

func draftOf(name string, p task.Payload) (events.Draft, error) {
	payload, err := json.Marshal(p)
	if err != nil {
		return events.Draft{}, fmt.Errorf("%s of task %s: %w", name, p.WorkRef, err)
	}
	if err := check(name, payload); err != nil {
		return events.Draft{}, fmt.Errorf("%s of task %s: %w", name, p.WorkRef, err)
	}
	return events.Draft{Name: name, CorrelationID: p.WorkRef, Payload: payload}, nil
}

// Check returns a [task.ErrInvalid] error if readers of a task would ignore the event,
// whatever the state of the task is.
func Check(name string, p task.Payload) error {
	_, err := draftOf(name, p)
	return err
}

func check(name string, payload []byte) error {
	e, err := task.Decode(events.FormatID(1), name, "", time.Time{}, payload)
	if err != nil {
		return err
	}
	var unknown task.State // refuses nothing else as invalid
	if change := unknown.Apply(e); change.Kind == task.ChangeInvalid {
		return fmt.Errorf("%w: %s", task.ErrInvalid, change.Reason)
	}
	return nil
}
