package board

import (
	"context"
	"fmt"
	"time"

	"github.com/busdk/bus-integration-task/task"
)

// follow folds the events of the log until ctx ends.
func (s *server) follow(ctx context.Context) {
	done := make(chan struct{})
	go func() { defer close(done); s.readAgain(ctx) }()
	defer func() { <-done }()
	for wait := s.retry; ; wait = min(2*wait, 30*s.retry) {
		before := s.tasks.position()
		err := s.o.Log.Follow(ctx, s.tasks.apply, s.tasks.caughtUp, func(err error) { s.tasks.lost(line(err.Error(), maxTitle)) })
		if ctx.Err() != nil {
			return
		}
		why := "the stream of events ended"
		if err != nil {
			why = err.Error()
		}
		s.tasks.lost(line(why, maxTitle))
		s.warn("cannot follow the log: " + why + "; trying again")
		if s.tasks.position() != before {
			wait = s.retry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// readAgain reads tasks that were forgotten and are reopened, until ctx ends.
func (s *server) readAgain(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.tasks.revived:
		}
		for ctx.Err() == nil {
			ref, reopened, ok := s.tasks.toRead()
			if !ok {
				break
			}
			s.readTask(ctx, ref, reopened)
		}
	}
}

// readTask reads a reopened task. Events that arrive meanwhile make it read again.
func (s *server) readTask(ctx context.Context, ref, reopened string) {
	const attempts = 5
	var err error
	for range attempts {
		t, before := &entry{Ref: ref}, entry{}
		reading, cancel := context.WithTimeout(ctx, askTimeout)
		err = s.o.Log.Task(reading, ref, func(e task.Event) {
			if e.ID == reopened {
				before = *t
			}
			t.apply(e)
		})
		cancel()
		if err == nil && !s.tasks.revive(ref, t, &before) {
			return
		}
	}
	if ctx.Err() == nil {
		s.tasks.giveUp(ref)
		s.warn(fmt.Sprintf("cannot read the reopened task %q: %v; it is not shown", ref, err))
	}
}
