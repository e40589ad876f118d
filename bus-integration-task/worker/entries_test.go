package worker

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-integration-task/task"
)

// A laggingLog delivers its events long after they were appended. The events after the
// creation of a task are appended just before the worker claims it.
type laggingLog struct {
	events []task.Event
	taken  map[string]bool
}

func (l *laggingLog) Follow(ctx context.Context, each func(task.Event) error, caughtUp func()) error {
	caughtUp()
	for _, e := range l.events {
		if err := each(e); err != nil {
			return err
		}
		time.Sleep(30 * time.Second)
	}
	<-ctx.Done()
	return ctx.Err()
}

func (l *laggingLog) Read(_ context.Context, ref, after string, each func(task.Event) error) error {
	for _, e := range l.events {
		if e.WorkRef == ref && e.ID > after && (e.Name == task.Created || l.taken[ref]) {
			if err := each(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *laggingLog) Append(_ context.Context, _ string, p task.Payload, _ string) (string, error) {
	l.taken[p.WorkRef] = true
	return "", ErrConflict
}

// A task whose end the worker has read is forgotten, though the stream shows the end later.
func TestEndedTasksAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &laggingLog{taken: map[string]bool{}}
		for i := range 100 {
			p := task.Payload{WorkRef: fmt.Sprintf("bus#%d.1", i), Recipient: "dev", WorkerID: "other", AttemptID: "a"}
			for _, name := range []string{task.Created, task.Claimed, task.Done} {
				l.events = append(l.events, task.Event{ID: fmt.Sprintf("evt_%019d", len(l.events)+1), Name: name, Payload: p})
			}
		}
		r := (&Worker{Worker: task.Worker{ID: "w", Recipient: "dev"}, Log: l}).newRun()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- l.Follow(ctx, r.event, r.caughtUp) }()
		_ = r.serve(ctx, ctx, ended)
		if len(r.entries) > 0 {
			t.Errorf("%d of 100 tasks are kept", len(r.entries))
		}
	})
}
