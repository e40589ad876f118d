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

// A droppingLog shows the end of a task while the worker claims it, and its new round
// before the claim is answered.
type droppingLog struct {
	*laggingLog
	claiming func()
}

func (l *droppingLog) Append(_ context.Context, name string, p task.Payload, _ string) (string, error) {
	if name == task.Claimed && l.claiming != nil {
		l.claiming()
		l.claiming = nil
	}
	e := task.Event{ID: fmt.Sprintf("evt_%019d", len(l.events)+1), Name: name, Payload: p}
	l.events = append(l.events, e)
	return e.ID, nil
}

// A claim is kept, and its end does not panic, though its task was dropped meanwhile.
func TestClaimOfADroppedTaskIsKept(t *testing.T) {
	t.Parallel()
	for name, reread := range map[string]bool{"to be read": false, "read again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const ref = "bus#1.1"
				l := &droppingLog{laggingLog: &laggingLog{taken: map[string]bool{ref: true}}}
				var r *run
				post := func(name string) {
					e := task.Event{ID: fmt.Sprintf("evt_%019d", len(l.events)+1), Name: name, Payload: task.Payload{WorkRef: ref, Recipient: "dev"}}
					l.events = append(l.events, e)
					_ = r.event(e)
				}
				worked := false
				r = (&Worker{Worker: task.Worker{ID: "w", Recipient: "dev"}, Log: l, Handler: works(func(_ context.Context, c *Claim) End {
					worked = true
					r.mu.Lock()
					defer r.mu.Unlock()
					if r.entries[ref] != c.entry || len(r.unread) > 0 {
						t.Errorf("entry %p of the claim, %p of the task; %d to read", c.entry, r.entries[ref], len(r.unread))
					}
					return End{Name: task.Done}
				})}).newRun()
				post(task.Created)
				r.caughtUp()
				e := r.entries[ref]
				l.claiming = func() {
					post(task.Canceled)
					post(task.Reopened)
					_ = r.read(t.Context(), e, ref)
					if reread {
						r.readNew(t.Context())
					}
				}
				if !r.claim(t.Context(), t.Context(), e) {
					t.Fatal("not claimed")
				}
				r.endAll(time.Minute)
				if !worked || r.running != 0 || len(r.entries) > 0 {
					t.Errorf("worked: %v; %d running, entries %v", worked, r.running, r.entries)
				}
			})
		})
	}
}

// works is a function as a Handler.
type works func(ctx context.Context, c *Claim) End

func (h works) Work(ctx context.Context, c *Claim) End { return h(ctx, c) }

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
