package containers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/worker/backend/containers"
	"github.com/busdk/bus-integration-task/worker/backend/internal/memorybus"
)

// A stuckEngine runs nothing, and each run until it is canceled.
type stuckEngine struct{ begun []string }

func (*stuckEngine) Name() string { return "stuck" }

func (e *stuckEngine) Run(ctx context.Context, r containers.RunRequest) (containers.Exit, error) {
	e.begun = append(e.begun, r.RunID) // one at a time
	<-ctx.Done()
	return containers.Exit{Code: -1}, nil
}

// An oldBus is a server that does not report that a stream has caught up.
type oldBus struct{ *memorybus.Bus }

func (b oldBus) Stream(ctx context.Context, q events.Query, handle func(events.Event) error) error {
	q.CaughtUp = nil
	return b.Bus.Stream(ctx, q, handle)
}

// serveStuck starts an integration with one slot and an engine that is stuck.
func serveStuck(t *testing.T, bus containers.Bus) (e *stuckEngine, stop func()) {
	t.Helper()
	e = new(stuckEngine)
	i := &containers.Integration{Bus: bus, Engine: e, Profiles: map[string]string{"shell": "debian"}, MaxRuns: 1, Failed: func(err error) { t.Error(err) }}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- i.Serve(ctx) }()
	return e, func() {
		t.Helper()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Serve ended with %v", err)
		}
	}
}

// request asks for a run of one hour.
func request(t *testing.T, bus *memorybus.Bus, id string) {
	t.Helper()
	r := runRequest("true")
	r.RunID, r.TimeoutSeconds = id, 3600
	publish(t, bus, containers.NameRunRequest, r)
}

// codes counts the error codes of the responses to runs.
func codes(bus *memorybus.Bus) map[string]int {
	all := map[string]int{}
	for _, e := range bus.Events(containers.NameRunResponse) {
		if e.Error != nil {
			all[e.Error.Code]++
		} else {
			all[""]++
		}
	}
	return all
}

func TestWaitingRequestsAreAnsweredAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := new(memorybus.Bus)
		engine, stop := serveStuck(t, bus)
		for n := range 3 {
			request(t, bus, fmt.Sprint("run-", n))
		}
		synctest.Wait()
		stop()
		if got := codes(bus); got[containers.CodeInterrupted] != 3 || len(got) != 1 || len(engine.begun) != 1 {
			t.Errorf("answers %v, runs %q", got, engine.begun)
		}
	})
}

func TestWaitingRequestIsDeletedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := new(memorybus.Bus)
		engine, stop := serveStuck(t, bus)
		request(t, bus, "run-1")
		synctest.Wait()
		request(t, bus, "run-2")
		synctest.Wait()
		publish(t, bus, containers.NameDeleteRequest, containers.DeleteRequest{RunID: "run-2"})
		synctest.Wait()
		if got := codes(bus); got[""] != 1 || len(got) != 1 {
			t.Errorf("answers %v", got)
		}
		stop()
		if len(engine.begun) != 1 {
			t.Errorf("runs %q", engine.begun)
		}
	})
}

// A request that has expired while it waited does not run.
func TestWaitingRequestExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := new(memorybus.Bus)
		engine, stop := serveStuck(t, bus)
		request(t, bus, "run-1")
		synctest.Wait()
		r := runRequest("true")
		r.RunID, r.TimeoutSeconds = "run-2", 60
		publish(t, bus, containers.NameRunRequest, r)
		time.Sleep(2 * time.Hour)
		if got := codes(bus); got[""] != 1 || got["run_failed"] != 1 || len(engine.begun) != 1 {
			t.Errorf("answers %v, runs %q", got, engine.begun)
		}
		stop()
	})
}

func TestWaitingRequestsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := new(memorybus.Bus)
		_, stop := serveStuck(t, bus)
		for n := range 1 + containers.MaxWaiting + 3 {
			request(t, bus, fmt.Sprint("run-", n))
		}
		synctest.Wait()
		if got := codes(bus); got[containers.CodeBusy] != 3 || len(got) != 1 {
			t.Errorf("answers %v", got)
		}
		stop()
	})
}

// A run that was deleted while no integration served does not run.
func TestEarlierDeletionCounts(t *testing.T) {
	t.Parallel()
	for name, old := range map[string]bool{"a server that reports the end of the log": false, "another server": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				bus := new(memorybus.Bus)
				request(t, bus, "run-1")
				publish(t, bus, containers.NameDeleteRequest, containers.DeleteRequest{RunID: "run-1"})
				var served containers.Bus = bus
				if old {
					served = oldBus{bus}
				}
				engine, stop := serveStuck(t, served)
				time.Sleep(10 * time.Second)
				if got := codes(bus); got[""] != 1 || len(got) != 1 || len(engine.begun) != 0 {
					t.Errorf("answers %v, runs %q", got, engine.begun)
				}
				request(t, bus, "run-2")
				synctest.Wait()
				stop()
				if len(engine.begun) != 1 {
					t.Errorf("runs %q", engine.begun)
				}
			})
		})
	}
}

// Deletions whose requests have expired take no room.
func TestOldDeletionIsIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := new(memorybus.Bus)
		publish(t, bus, containers.NameDeleteRequest, containers.DeleteRequest{RunID: "run-1"})
		time.Sleep(containers.MaxTimeout + 2*time.Minute)
		request(t, bus, "run-1")
		engine, stop := serveStuck(t, bus)
		synctest.Wait()
		stop()
		if len(engine.begun) != 1 {
			t.Errorf("runs %q", engine.begun)
		}
	})
}
