package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker"
)

// handler is a function as a Handler.
type handler func(ctx context.Context, c *worker.Claim) worker.End

func (h handler) Work(ctx context.Context, c *worker.Claim) worker.End { return h(ctx, c) }

var doneAtOnce = handler(func(context.Context, *worker.Claim) worker.End {
	return worker.End{Name: task.Done, Payload: task.Payload{Text: "did it"}}
})

func untilStopped(ctx context.Context, _ *worker.Claim) worker.End {
	<-ctx.Done()
	return worker.End{Name: task.Released}
}

func newWorker(log *memoryLog, id string, h worker.Handler) *worker.Worker {
	n := 0
	return &worker.Worker{
		Worker: task.Worker{ID: id, Recipient: "dev", SafeRetries: 1},
		Log:    log, Handler: h, Lease: 30 * time.Second,
		NewID: func() string { n++; return fmt.Sprint(id, "-", n) },
	}
}

func create(log *memoryLog, ref string) {
	log.post(task.Created, task.Payload{WorkRef: ref, Recipient: "dev", Text: "fix " + ref})
}

// start runs a worker, and returns a function that stops it and waits for its end.
func start(t *testing.T, w *worker.Worker) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error { cancel(); return <-ended }
}

// Tasks that exist, and those that come later, are claimed and ended once.
func TestWorkerEndsItsTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		create(log, "bus#1.1")
		log.post(task.Created, task.Payload{WorkRef: "bus#2.1", Recipient: "ops"})
		create(log, "bus#3.1")
		log.post(task.Canceled, task.Payload{WorkRef: "bus#3.1"})
		stop := start(t, newWorker(log, "w", doneAtOnce))
		synctest.Wait()
		create(log, "bus#4.1")
		log.post(task.Assigned, task.Payload{WorkRef: "bus#2.1", Recipient: "dev"})
		synctest.Wait()
		log.post(task.Reopened, task.Payload{WorkRef: "bus#3.1", Text: "after all"})
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		for _, ref := range []string{"bus#1.1", "bus#2.1", "bus#3.1", "bus#4.1"} {
			s := log.state(ref)
			if s.Status != task.StatusDone || s.End.Text != "did it" || log.count(ref, task.Claimed) != 1 || log.count(ref, task.Done) != 1 {
				t.Errorf("%+v", s)
			}
		}
	})
}

// The time of a task is not idle.
func TestIdleTimeoutBeginsAfterTheTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		create(log, "bus#1.1")
		w := newWorker(log, "w", handler(func(context.Context, *worker.Claim) worker.End {
			time.Sleep(50 * time.Second)
			return worker.End{Name: task.Done}
		}))
		w.IdleTimeout, w.Lease = 10*time.Second, time.Hour
		var ended time.Time
		w.Log = endsLog{log, func() { ended = time.Now() }}
		if err := w.Run(t.Context()); err != nil || time.Since(ended) < w.IdleTimeout {
			t.Errorf("%v; the worker ended %v after the task", err, time.Since(ended))
		}
	})
}

// An endsLog reports the end of a task.
type endsLog struct {
	*memoryLog
	ended func()
}

func (l endsLog) Append(ctx context.Context, name string, p task.Payload, last string) (string, error) {
	if name == task.Done {
		l.ended()
	}
	return l.memoryLog.Append(ctx, name, p, last)
}

// Of many workers one works on a task, and all tasks are worked on.
func TestWorkersShareTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		var mu sync.Mutex
		worked := map[string]int{}
		h := handler(func(_ context.Context, c *worker.Claim) worker.End {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			worked[c.Task().Ref]++
			return worker.End{Name: task.Done}
		})
		for n := range 20 {
			create(log, fmt.Sprintf("bus#%d.1", n))
		}
		var stops []func() error
		for n := range 8 {
			stops = append(stops, start(t, newWorker(log, fmt.Sprint("w", n), h)))
		}
		for n := range 20 {
			create(log, fmt.Sprintf("bus#%d.2", n))
		}
		time.Sleep(time.Minute)
		for _, stop := range stops {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		if len(worked) != 40 {
			t.Errorf("%d of 40 tasks were worked on", len(worked))
		}
		for ref, n := range worked {
			if n != 1 || log.state(ref).Status != task.StatusDone {
				t.Errorf("%s: worked on %d times, %s", ref, n, log.state(ref).Status)
			}
		}
	})
}

// Idle workers do not all claim a task that they see, and one that is alone does not wait.
func TestIdleWorkersSpreadClaims(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		workers, others int
		conflicts       int64 // of the first claims
		refused         int64
	}{{1, 0, 0, 0}, {1, 10, 0, 0}, {1, 0, 1, 0}, {60, 0, 0, 100}} {
		synctest.Test(t, func(t *testing.T) {
			log := newLog()
			var claims atomic.Int64
			log.offline = func(name string) error {
				if name == task.Claimed {
					time.Sleep(5 * time.Millisecond)
					if claims.Add(1) <= tt.conflicts {
						return worker.ErrConflict
					}
				}
				return nil
			}
			var mu sync.Mutex
			created, latest, last := map[string]time.Time{}, time.Duration(0), time.Duration(0)
			h := handler(func(_ context.Context, c *worker.Claim) worker.End {
				mu.Lock()
				last = time.Since(created[c.Task().Ref])
				latest = max(latest, last)
				mu.Unlock()
				time.Sleep(time.Second)
				return worker.End{Name: task.Done}
			})
			for n := range tt.others { // that are gone, as far as the log shows
				p := task.Payload{WorkRef: fmt.Sprintf("bus#%d.1", n), Recipient: "dev", WorkerID: fmt.Sprint("other", n), AttemptID: "a"}
				for _, name := range []string{task.Created, task.Claimed, task.Done} {
					log.post(name, p)
				}
			}
			var stops []func() error
			for n := range tt.workers {
				stops = append(stops, start(t, newWorker(log, fmt.Sprint("w", n), h)))
			}
			const tasks = 60
			first := int64(0)
			for n := range tasks {
				ref := fmt.Sprintf("bus#%d", n)
				mu.Lock()
				created[ref] = time.Now()
				mu.Unlock()
				create(log, ref)
				time.Sleep(2 * time.Second)
				if n == tasks/3 {
					first = claims.Load() - tasks/3 - 1
				}
			}
			for _, stop := range stops {
				if err := stop(); err != nil {
					t.Error(err)
				}
			}
			refused := claims.Load() - tasks - first
			if tt.workers == 1 && last != 5*time.Millisecond {
				t.Errorf("the lone worker claims after %s when it has claimed %d", last, tasks)
			}
			waits := latest > 10*time.Millisecond
			if refused > tt.refused || latest > 500*time.Millisecond || waits != (tt.workers+tt.others > 1 || tt.conflicts > 0) {
				t.Errorf("%d workers, %d in the log, %d conflicts: %d refused for %d tasks, then %d; claimed after %s", tt.workers, tt.others, tt.conflicts, first, tasks/3+1, refused, latest)
			}
		})
	}
}

// While a turn takes long, its claim is renewed.
func TestClaimIsRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		create(log, "bus#1.1")
		long := handler(func(context.Context, *worker.Claim) worker.End {
			time.Sleep(10 * time.Minute)
			return worker.End{Name: task.Done}
		})
		first := start(t, newWorker(log, "a", long))
		synctest.Wait()
		second := start(t, newWorker(log, "b", long))
		time.Sleep(11 * time.Minute)
		if s := log.state("bus#1.1"); s.Status != task.StatusDone || s.End.WorkerID != "a" || log.count("bus#1.1", task.Claimed) != 1 {
			t.Errorf("%+v", s)
		}
		if err := errors.Join(first(), second()); err != nil {
			t.Error(err)
		}
	})
}

// A worker that is cut off from the log for longer than the lease stops, and another takes
// the task over. What the first one does later has no effect.
func TestLostWorkerIsSuperseded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		create(log, "bus#1.1")
		var cause error
		var announced error
		var cut atomic.Bool
		a := newWorker(log, "a", handler(func(ctx context.Context, c *worker.Claim) worker.End {
			<-ctx.Done()
			cause = context.Cause(ctx)
			cut.Store(false)
			time.Sleep(time.Minute)
			announced = c.Announce(context.WithoutCancel(ctx), strings.Repeat("a", 40), "main")
			return worker.End{Name: task.Done}
		}))
		log.offline = func(string) error {
			if cut.Load() {
				return errors.New("no route")
			}
			return nil
		}
		stopA := start(t, a)
		synctest.Wait()
		cut.Store(true)
		time.Sleep(45 * time.Second)
		synctest.Wait()
		if !errors.Is(cause, worker.ErrLost) {
			t.Errorf("the context of the lost attempt ended with %v", cause)
		}
		stopB := start(t, newWorker(log, "b", doneAtOnce))
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		s := log.state("bus#1.1")
		if s.Status != task.StatusDone || s.End.WorkerID != "b" || s.Lapsed != 1 || s.Announced.Commit != "" {
			t.Errorf("%+v", s)
		}
		if !errors.Is(announced, worker.ErrLost) {
			t.Errorf("Announce = %v, want ErrLost", announced)
		}
		if err := errors.Join(stopA(), stopB()); err != nil {
			t.Error(err)
		}
	})
}

// A claim and an end count once though the answer to their append was lost.
func TestAnswersOfTheLogAreLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		lost := map[string]bool{}
		log.unsure = func(name string) bool {
			first := !lost[name]
			lost[name] = true
			return first
		}
		create(log, "bus#1.1")
		stop := start(t, newWorker(log, "w", handler(func(ctx context.Context, c *worker.Claim) worker.End {
			if err := c.Announce(ctx, strings.Repeat("a", 40), "main"); err != nil {
				t.Error(err)
			}
			return worker.End{Name: task.Done}
		})))
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		s := log.state("bus#1.1")
		if s.Status != task.StatusDone || log.count("bus#1.1", task.Claimed) != 1 || log.count("bus#1.1", task.Done) != 1 || len(lost) != 3 {
			t.Errorf("%+v", s)
		}
	})
}

// A reading of the task that is cut off, or ends before the events that the worker knows,
// continues where it was.
func TestEventsAreReadOverCuts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		create(log, "bus#1.1")
		for _, text := range []string{"a", "b"} {
			log.post(task.Message, task.Payload{WorkRef: "bus#1.1", Text: text})
		}
		refused := errors.New("refused")
		var names []string
		var err, later, ended error
		stop := start(t, newWorker(log, "w", handler(func(ctx context.Context, c *worker.Claim) worker.End {
			log.cut = func(read int) error {
				if read == 1 {
					return errors.New("connection reset")
				}
				return nil
			}
			log.late = 2
			err = c.Events(ctx, func(e task.Event) error { names = append(names, e.Name); return nil })
			log.cut = nil
			later = c.Events(ctx, func(task.Event) error { return refused })
			log.cut = func(int) error { return errors.New("no route") }
			bounded, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			ended = c.Events(bounded, nil)
			log.cut = nil
			return worker.End{Name: task.Done}
		})))
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if want := []string{task.Created, task.Message, task.Message, task.Claimed}; err != nil || !slices.Equal(names, want) {
			t.Errorf("%q, %v", names, err)
		}
		if later != refused || !errors.Is(ended, context.DeadlineExceeded) {
			t.Errorf("%v, %v", later, ended)
		}
	})
}

func TestInputsReachTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		create(log, "bus#1.1")
		log.post(task.Message, task.Payload{WorkRef: "bus#1.1", Text: "before"})
		var got []string
		stop := start(t, newWorker(log, "w", handler(func(ctx context.Context, c *worker.Claim) worker.End {
			if err := c.Report(ctx, task.ApprovalRequested, task.Payload{ApprovalID: "1", Text: "may I"}); err != nil {
				t.Error(err)
			}
			for i := range c.Inputs() {
				got = append(got, i.Text+i.Decision)
				c.Delivered(i.EventID)
				if i.Decision != "" {
					break
				}
			}
			return worker.End{Name: task.Blocked}
		})))
		synctest.Wait()
		log.post(task.Message, task.Payload{WorkRef: "bus#1.1", Text: "during"})
		log.post(task.ApprovalAnswered, task.Payload{WorkRef: "bus#1.1", ApprovalID: "1", Decision: "decline"})
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		s := log.state("bus#1.1")
		if strings.Join(got, " ") != "before during decline" || s.Status != task.StatusBlocked || len(s.Messages) != 0 {
			t.Errorf("%q, %+v", got, s)
		}
	})
}

func TestCauses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event  string
		want   error
		status task.Status
	}{
		"canceled":              {task.Canceled, worker.ErrCanceled, task.StatusCanceled},
		"assigned to another":   {task.Assigned, worker.ErrLost, task.StatusOpen},
		"the worker is stopped": {"", worker.ErrStopping, task.StatusOpen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := newLog()
				create(log, "bus#1.1")
				var cause error
				stop := start(t, newWorker(log, "w", handler(func(ctx context.Context, c *worker.Claim) worker.End {
					defer func() { cause = context.Cause(ctx) }()
					return untilStopped(ctx, c)
				})))
				synctest.Wait()
				if c.event != "" {
					log.post(c.event, task.Payload{WorkRef: "bus#1.1", Recipient: "ops"})
				}
				synctest.Wait()
				begun := time.Now()
				if err := stop(); err != nil {
					t.Error(err)
				}
				took := time.Since(begun)
				if s := log.state("bus#1.1"); !errors.Is(cause, c.want) || s.Status != c.status || took > worker.DefaultHandBack {
					t.Errorf("%v after %v: %+v", cause, took, s)
				}
			})
		})
	}
}

// A turn that ends in time is finished when the worker stops.
func TestStopLetsATurnFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		create(log, "bus#1.1")
		create(log, "bus#2.1")
		stop := start(t, newWorker(log, "w", handler(func(context.Context, *worker.Claim) worker.End {
			time.Sleep(15 * time.Second)
			return worker.End{Name: task.Done}
		})))
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		one, two := log.state("bus#1.1").Status, log.state("bus#2.1").Status
		if one == two || one != task.StatusDone && two != task.StatusDone || one != task.StatusOpen && two != task.StatusOpen {
			t.Errorf("%s, %s", one, two)
		}
	})
}

func TestHurryHandsBackAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		create(log, "bus#1.1")
		w := newWorker(log, "w", handler(func(ctx context.Context, _ *worker.Claim) worker.End {
			<-ctx.Done()
			return worker.End{Name: task.Released}
		}))
		hurry := make(chan struct{})
		w.HandBack, w.Hurry = time.Hour, hurry
		stop := start(t, w)
		synctest.Wait()
		begun := time.Now()
		time.AfterFunc(time.Second, func() { close(hurry) })
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > 2*time.Second || log.state("bus#1.1").Status != task.StatusOpen {
			t.Errorf("%s after %v", log.state("bus#1.1").Status, took)
		}
	})
}

func TestOnceAndIdleTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		begun := time.Now()
		idle := newWorker(log, "w", doneAtOnce)
		idle.IdleTimeout = 10 * time.Minute
		if err := idle.Run(t.Context()); err != nil || time.Since(begun) != 10*time.Minute {
			t.Errorf("ended after %v: %v", time.Since(begun), err)
		}
		create(log, "bus#1.1")
		create(log, "bus#2.1")
		once := newWorker(log, "w2", doneAtOnce)
		once.Once = true
		if err := once.Run(t.Context()); err != nil {
			t.Error(err)
		}
		if n := log.count("bus#1.1", task.Done) + log.count("bus#2.1", task.Done); n != 1 {
			t.Errorf("%d tasks were done", n)
		}
	})
}

func TestLogThatRefusesEndsTheWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(newLog(), "w", doneAtOnce)
		w.Log = refusing{w.Log}
		if err := w.Run(t.Context()); !errors.Is(err, errRefused) {
			t.Errorf("Run = %v", err)
		}
	})
}

var errRefused = errors.New("401")

type refusing struct{ worker.Log }

func (refusing) Follow(context.Context, func(task.Event) error, func()) error { return errRefused }

// A task whose workers are all lost is not tried for ever.
func TestGiveUpIsForTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		create(log, "bus#1.1")
		log.post(task.Claimed, task.Payload{WorkRef: "bus#1.1", WorkerID: "x", AttemptID: "x-1", LeaseSeconds: 10})
		log.post(task.Claimed, task.Payload{WorkRef: "bus#1.1", WorkerID: "y", AttemptID: "y-1", LeaseSeconds: 10, Supersedes: "x-1"})
		var decided task.Action
		stop := start(t, newWorker(log, "w", handler(func(_ context.Context, c *worker.Claim) worker.End {
			decided = c.Decide("").Action
			return worker.End{Name: task.Failed}
		})))
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if s := log.state("bus#1.1"); decided != task.GiveUp || s.Status != task.StatusFailed {
			t.Errorf("%s: %+v", decided, s)
		}
	})
}

// A worker whose token is refused does not wait for its lease before it stops.
func TestRefusedTokenEndsAnAppendAtOnce(t *testing.T) {
	t.Parallel()
	for _, refusal := range []error{events.ErrUnauthorized, events.ErrForbidden} {
		synctest.Test(t, func(t *testing.T) {
			log := newLog()
			create(log, "bus#1.1")
			var took time.Duration
			var err error
			w := newWorker(log, "w", handler(func(ctx context.Context, c *worker.Claim) worker.End {
				log.offline = func(string) error { return refusal }
				begun := time.Now()
				err = c.Announce(ctx, strings.Repeat("a", 40), "main")
				took = time.Since(begun)
				return worker.End{Name: task.Done}
			}))
			w.Once = true
			if err := w.Run(t.Context()); err != nil {
				t.Error(err)
			}
			if !errors.Is(err, refusal) || took > 0 || log.count("bus#1.1", task.Done) != 0 {
				t.Errorf("%v after %v", err, took)
			}
		})
	}
}
