package worker

import (
	"context"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/task"
)

// ErrConflict is in the error of [Log.Append] if the task has a later event than the
// caller has seen.
var ErrConflict = events.ErrConflict

// A Log is the log of tasks. Its methods may be called concurrently.
type Log interface {
	// Follow calls each for every event of every task in the order of the log, and
	// caughtUp once after those that were in the log when Follow was called. It
	// reconnects by itself, and returns when ctx ends, when each fails, or when the
	// server refuses the caller.
	Follow(ctx context.Context, each func(task.Event) error, caughtUp func()) error

	// Read calls each for the events of one task that come after the event with the ID
	// after, in order; "" is before the first.
	Read(ctx context.Context, ref, after string, each func(task.Event) error) error

	// Append appends an event of the task p.WorkRef and returns its ID, if last is the ID
	// of the task's latest event, and otherwise fails with ErrConflict. "" stands for a
	// task without events. After any other error the event may be in the log or not.
	Append(ctx context.Context, name string, p task.Payload, last string) (id string, err error)
}
