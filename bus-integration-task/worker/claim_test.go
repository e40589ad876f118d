package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker"
	"github.com/busdk/bus-integration-task/worker/backend"
)

// The first event that the worker sees of a task need not be its first: it has dropped a
// task that ended, or never kept one of another recipient.
func TestRepeatedCreationIsNotClaimed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		create(log, "bus#1.1")
		log.post(task.Created, task.Payload{WorkRef: "bus#2.1", Recipient: "ops"})
		var turns atomic.Int64
		stop := start(t, newWorker(log, "w", handler(func(context.Context, *worker.Claim) worker.End {
			turns.Add(1)
			return worker.End{Name: task.Done}
		})))
		time.Sleep(time.Minute)
		create(log, "bus#1.1")
		create(log, "bus#2.1")
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if turns.Load() != 1 || log.count("bus#1.1", task.Claimed) != 1 || log.count("bus#2.1", task.Claimed) != 0 {
			t.Errorf("%d turns; %+v, %+v", turns.Load(), log.state("bus#1.1"), log.state("bus#2.1"))
		}
	})
}

// A task that waits for approval is claimed when it has it.
func TestApprovedTaskIsClaimed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		pending := func(ref string) {
			log.post(task.Created, task.Payload{WorkRef: ref, Recipient: "dev", Status: string(task.StatusPending)})
		}
		pending("bus#1.1")
		pending("bus#2.1")
		log.post(task.Approved, task.Payload{WorkRef: "bus#2.1"})
		stop := start(t, newWorker(log, "w", doneAtOnce))
		time.Sleep(time.Minute)
		if log.count("bus#1.1", task.Claimed) != 0 || log.state("bus#2.1").Status != task.StatusDone {
			t.Errorf("before the approval: %+v, %+v", log.state("bus#1.1"), log.state("bus#2.1"))
		}
		log.post(task.Approved, task.Payload{WorkRef: "bus#1.1"})
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if s := log.state("bus#1.1"); s.Status != task.StatusDone {
			t.Errorf("%+v", s)
		}
	})
}

// A worker whose appends are refused, and that cannot read why, gives its claim up after
// the lease, and does not flood the log meanwhile.
func TestClaimLapsesWhileReadsFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		create(log, "bus#1.1")
		var cause error
		begun := time.Now()
		var took time.Duration
		var appends atomic.Int64
		stop := start(t, newWorker(log, "w", handler(func(ctx context.Context, c *worker.Claim) worker.End {
			log.fail(func(int) error { return errors.New("429") }, func(string) error { appends.Add(1); return worker.ErrConflict })
			<-ctx.Done()
			cause, took = context.Cause(ctx), time.Since(begun)
			return worker.End{Name: task.Done}
		})))
		time.Sleep(10 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if !errors.Is(cause, worker.ErrLost) || took > 2*30*time.Second || appends.Load() > 1000 {
			t.Errorf("%v after %v with %d appends", cause, took, appends.Load())
		}
	})
}

// A claim announces at most task.MaxLease in whole seconds, and is renewed before that.
func TestLeaseIsTheAnnouncedOne(t *testing.T) {
	t.Parallel()
	for lease, want := range map[time.Duration]time.Duration{
		4 * time.Hour: task.MaxLease, 3900 * time.Millisecond: 3 * time.Second, time.Millisecond: time.Second, 0: worker.DefaultLease,
	} {
		t.Run(lease.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := newLog()
				create(log, "bus#1.1")
				work := handler(func(ctx context.Context, _ *worker.Claim) worker.End {
					select {
					case <-ctx.Done():
						t.Error(context.Cause(ctx))
					case <-time.After(5 * want):
					}
					return worker.End{Name: task.Done}
				})
				first := newWorker(log, "first", work)
				first.Lease = lease
				stop := start(t, first)
				synctest.Wait()
				stopOther := start(t, newWorker(log, "other", work))
				time.Sleep(6 * want)
				_, _ = stop(), stopOther()
				if n := log.count("bus#1.1", task.Claimed); n != 1 {
					t.Errorf("%d claims", n)
				}
				for _, e := range log.events {
					if e.Name == task.Claimed && e.LeaseSeconds != int(want.Seconds()) {
						t.Errorf("a lease of %d seconds, want %v", e.LeaseSeconds, want)
					}
				}
			})
		})
	}
}

// A claim that is refused for a reason that cannot be read is not repeated at once.
func TestRefusedClaimWaits(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]error{"reads fail": errors.New("429"), "reads show nothing": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := newLog()
				create(log, "bus#1.1")
				claims := 0
				log.offline = func(string) error {
					log.fail(func(int) error { return cut }, log.offline)
					claims++
					return worker.ErrConflict
				}
				stop := start(t, newWorker(log, "w", doneAtOnce))
				time.Sleep(time.Minute)
				if err := stop(); err != nil || claims > 1500 {
					t.Errorf("%v; %d claims in a minute", err, claims)
				}
			})
		})
	}
}

// An event that can never be appended fails at once, and the claim stays.
func TestInvalidEventFailsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		create(log, "bus#1.1")
		log.offline = func(name string) error {
			if name == task.Message {
				return fmt.Errorf("%w: too large", task.ErrInvalid)
			}
			return nil
		}
		stop := start(t, newWorker(log, "w", handler(func(ctx context.Context, c *worker.Claim) worker.End {
			begun := time.Now()
			if err := c.Report(ctx, task.Message, task.Payload{}); !errors.Is(err, task.ErrInvalid) || time.Since(begun) > 0 {
				t.Errorf("%v after %v", err, time.Since(begun))
			}
			long := strings.Repeat("m", task.MaxField+1)
			if err := c.Report(ctx, task.Progress, task.Payload{ThreadID: long, Labels: task.Labels{ObservedModel: long}}); err != nil {
				t.Error(err)
			}
			return worker.End{Name: task.Done}
		})))
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if s := log.state("bus#1.1"); s.Status != task.StatusDone || s.Thread.ID != "" || len(s.Labels.ObservedModel) != task.MaxField {
			t.Errorf("%+v", s)
		}
	})
}

// A task ends though the report of its end cannot be appended.
func TestInvalidEndIsReplaced(t *testing.T) {
	t.Parallel()
	commit := strings.Repeat("a", 40)
	for name, c := range map[string]struct {
		end    worker.End
		status task.Status
	}{
		"a report that is too large": {worker.End{Name: task.Done, Payload: task.Payload{Body: "large", Commit: commit}}, task.StatusDone},
		"no name":                    {worker.End{}, task.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := newLog()
				create(log, "bus#1.1")
				refused := false
				log.offline = func(name string) error {
					if (name == task.Done || name == "") && !refused {
						refused = true
						return task.ErrInvalid
					}
					return nil
				}
				turns := 0
				stop := start(t, newWorker(log, "w", handler(func(context.Context, *worker.Claim) worker.End {
					turns++
					return c.end
				})))
				time.Sleep(10 * time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				s := log.state("bus#1.1")
				if turns != 1 || s.Status != c.status || s.End.Commit != c.end.Payload.Commit || !strings.Contains(s.End.Text, "cannot be read") {
					t.Errorf("%d turns, %+v", turns, s)
				}
			})
		})
	}
}

// A stoppedLog stops the worker while its claim is on its way.
type stoppedLog struct {
	*memoryLog
	stop context.CancelFunc
}

func (l stoppedLog) Append(ctx context.Context, name string, p task.Payload, last string) (string, error) {
	id, err := l.memoryLog.Append(ctx, name, p, last)
	if name == task.Claimed {
		l.stop()
		synctest.Wait()
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return id, err
}

func (l stoppedLog) Read(ctx context.Context, ref, after string, each func(task.Event) error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return l.memoryLog.Read(ctx, ref, after, each)
}

func TestClaimOfAStoppingWorkerIsHandedBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		create(log, "bus#1.1")
		w := newWorker(log, "w", handler(func(context.Context, *worker.Claim) worker.End {
			t.Error("the task was worked on")
			return worker.End{Name: task.Done}
		}))
		ctx, cancel := context.WithCancel(t.Context())
		w.Log = stoppedLog{log, cancel}
		log.hold = func(e task.Event) bool { return e.Name == task.Claimed } // the stream is late
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
		if s := log.state("bus#1.1"); s.Status != task.StatusOpen || log.count("bus#1.1", task.Released) != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// A worker that has to stop, and cannot reach the log, ends before its lease does.
func TestStopIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		create(log, "bus#1.1")
		w := newWorker(log, "w", handler(func(ctx context.Context, c *worker.Claim) worker.End {
			log.fail(nil, func(string) error { return errors.New("no route") })
			return untilStopped(ctx, c)
		}))
		w.Lease = time.Hour
		stop := start(t, w)
		synctest.Wait()
		begun := time.Now()
		if err := stop(); err != nil || time.Since(begun) > worker.DefaultHandBack+worker.StopLimit {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// The tasks of others are not read, and one that cannot be read delays no other.
func TestOnlyTasksThatMayBeOursAreRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := newLog()
		for n := range 50 {
			log.post(task.Created, task.Payload{WorkRef: fmt.Sprintf("bus#%d.1", n), Recipient: "ops"})
			log.post(task.Assigned, task.Payload{WorkRef: fmt.Sprintf("bus#%d.1", n), Recipient: "qa"})
		}
		for n := range 50 {
			ref := fmt.Sprintf("bus#%d.2", n)
			log.post(task.Created, task.Payload{WorkRef: ref, Recipient: "ops"})
			log.post(task.Assigned, task.Payload{WorkRef: ref, Recipient: "dev"})
		}
		create(log, "bus#1.3")
		var working atomic.Bool
		w := newWorker(log, "w", doneAtOnce)
		w.Log = failingReads{log, func(ref string) bool { return !working.Load() && strings.HasSuffix(ref, ".2") }}
		stop := start(t, w)
		time.Sleep(time.Minute)
		if s := log.state("bus#1.3"); s.Status != task.StatusDone {
			t.Errorf("%+v", s)
		}
		for n := range 50 {
			if log.reads[fmt.Sprintf("bus#%d.1", n)] != 0 || log.reads[fmt.Sprintf("bus#%d.2", n)] > 10 {
				t.Fatalf("reads: %v", log.reads)
			}
		}
		working.Store(true)
		time.Sleep(2 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		for n := range 50 {
			if s := log.state(fmt.Sprintf("bus#%d.2", n)); s.Status != task.StatusDone {
				t.Errorf("%+v", s)
			}
		}
	})
}

type failingReads struct {
	*memoryLog
	fails func(ref string) bool
}

func (l failingReads) Read(ctx context.Context, ref, after string, each func(task.Event) error) error {
	if l.fails(ref) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.reads[ref]++
		return errors.New("no route")
	}
	return l.memoryLog.Read(ctx, ref, after, each)
}

// What a user does reaches the worker before the next step that costs or changes something,
// though the stream is behind.
func TestStateIsCheckedBeforeEachStep(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]string{"the turn": "turn", "the commit": "commit"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			create(s.log, "bus#1.1")
			s.log.hold = func(e task.Event) bool { return e.Name == task.Canceled } // the stream is late
			var next atomic.Bool                                                    // Progress is of the step
			next.Store(step == "turn")
			s.log.offline = func(name string) error {
				if name == task.Progress && next.CompareAndSwap(true, false) {
					s.log.post(task.Canceled, task.Payload{WorkRef: "bus#1.1"})
				}
				return nil
			}
			w := newWorker(s.log, "w", s.bridge(func(ctx context.Context, a backend.Attempt, l backend.Listener) string {
				if step == "turn" {
					t.Error("the turn has begun")
				}
				next.Store(true)
				l.Message("continue") // the notice of the end is not a step
				return add(t, "two\n")(ctx, a, l)
			}))
			w.Once = true
			if err := w.Run(t.Context()); err != nil {
				t.Error(err)
			}
			kinds := s.git("cat-file", "--batch-all-objects", "--batch-check=%(objecttype)")
			if state := s.log.state("bus#1.1"); state.Status != task.StatusCanceled || strings.Count(kinds, "commit") != 1 {
				t.Errorf("%+v; objects %q", state, kinds)
			}
		})
	}
}

// A request that the agent no longer waits for is closed, and a late answer is reported as
// such.
func TestApprovalRequestIsClosed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.refusal = backend.ErrNotPending
	create(s.log, "bus#1.1")
	s.run(func(_ context.Context, _ backend.Attempt, l backend.Listener) string {
		l.ApprovalRequested(backend.Approval{ID: "1", Kind: "command"})
		l.ApprovalRequested(backend.Approval{ID: "2", Kind: "command"})
		l.ApprovalClosed("1")
		if open := s.log.state("bus#1.1").Approvals; len(open) != 1 || open[0].ID != "2" {
			t.Errorf("open requests: %+v", open)
		}
		s.log.post(task.ApprovalAnswered, task.Payload{WorkRef: "bus#1.1", ApprovalID: "2", Decision: "accept"})
		s.await(func(task.State) bool { return strings.Contains(s.last(task.Message).Text, "request 2 came too late") })
		return report(true)
	}, ended)
}
