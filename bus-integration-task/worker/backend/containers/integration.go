package containers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"

	"github.com/busdk/bus-integration-task/events"
)

// A Bus publishes and streams events; *events.Client is one.
type Bus interface {
	Publish(ctx context.Context, d events.Draft) (events.Published, error)
	Stream(ctx context.Context, q events.Query, handle func(events.Event) error) error
}

// Source is the source of the events of an Integration that names none.
const Source = "bus-integration-containers"

// An Integration answers requests for runs. Its fields must not change once it serves.
type Integration struct {
	Bus    Bus
	Engine Engine // a CLI, see Detect, or a Process

	// Profiles are the images of the profiles. With Process as the engine they only
	// name the profiles that are accepted.
	Profiles map[string]string

	// Name is the name of the runner in responses.
	Name string

	// Group is the group of the integrations that share the requests; "" is
	// "containers".
	Group string

	// MaxRuns is how many runs there are at a time; 0 is 4. Up to 1000 other requests
	// wait; further ones are answered with CodeBusy.
	MaxRuns int

	// Failed, if set, gets errors about single requests, such as a response that
	// cannot be published. It may be called concurrently.
	Failed func(error)
}

// maxKnown is how many run IDs are remembered, to run none twice.
const maxKnown = 10_000

const maxWaiting = 1000 // requests

// serving is a call of Serve.
type serving struct {
	*Integration
	accepted chan struct{} // a token for each request that runs or waits
	slots    chan struct{} // a token for each run
	runs     sync.WaitGroup

	mu    sync.Mutex
	known map[string]*known
	order []string // of known, oldest first
}

// known is a run that was requested, or deleted before that.
type known struct {
	cancel  context.CancelCauseFunc // nil unless it is running or waits
	deleted bool
	seen    bool // its request
}

// errDeleted is why a run is ended that was deleted.
var errDeleted = errors.New("the run was deleted")

// Serve answers requests until ctx ends or the bus fails, and returns when all runs have
// ended. First it removes the containers of integrations that were killed. Requests that
// were published while no integration served are answered too, unless they have expired.
// Requests that still wait when ctx ends are answered with CodeInterrupted.
func (i *Integration) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := orDefault(i.MaxRuns, 4)
	s := &serving{Integration: i, accepted: make(chan struct{}, slots+maxWaiting), slots: make(chan struct{}, slots), known: map[string]*known{}}
	defer s.runs.Wait()
	s.prune(ctx)
	deletes, caughtUp := make(chan error, 1), make(chan struct{})
	deletions := events.Query{Names: []string{NameDeleteRequest}, Replay: true, CaughtUp: sync.OnceFunc(func() { close(caughtUp) })}
	go func() {
		err := i.Bus.Stream(ctx, deletions, func(e events.Event) error {
			s.deleteRun(ctx, e)
			return nil
		})
		cancel(err)
		deletes <- err
	}()
	select { // runs that were deleted earlier must not begin
	case <-caughtUp:
	case <-time.After(catchUpLimit):
	case <-ctx.Done():
	}
	group := i.Group
	if group == "" {
		group = "containers"
	}
	query := events.Query{Names: []string{NameRunRequest}, Delivery: events.Unicast, Group: group, Consumer: i.Name, Replay: true}
	err := i.Bus.Stream(ctx, query, func(e events.Event) error {
		select {
		case s.accepted <- struct{}{}:
			s.runs.Go(func() {
				defer func() { <-s.accepted }()
				s.serveRun(ctx, e)
			})
		default:
			s.refuse(ctx, e, NameRunResponse, errBusy)
		}
		return nil
	})
	cancel(err)
	if deleteErr := <-deletes; !errors.Is(deleteErr, context.Canceled) {
		return deleteErr
	}
	return err
}

// catchUpLimit bounds the reading of earlier deletions. Some servers do not report its end.
const catchUpLimit = 5 * time.Second

// prune answers the requests of stale containers, whose clients would wait until the time
// of the run is over.
func (s *serving) prune(ctx context.Context) {
	engine, ok := s.Engine.(interface {
		Prune(context.Context) ([]string, error)
	})
	if !ok {
		return
	}
	stale, err := engine.Prune(ctx)
	for _, id := range stale {
		s.refuse(ctx, events.Event{CorrelationID: id, Name: NameRunRequest}, NameRunResponse, errInterrupted)
	}
	if err != nil && s.Failed != nil {
		s.Failed(fmt.Errorf("stale containers: %w", err))
	}
}

// errInterrupted is the answer to a run that the integration did not see end by itself.
var errInterrupted = errors.New("the container integration has ended, and the run with it")

var errBusy = errors.New("too many requests wait for a run; try again later")

func orDefault(n, byDefault int) int {
	if n <= 0 {
		return byDefault
	}
	return n
}

// serveRun runs a request once there is a free slot, and publishes the response.
func (s *serving) serveRun(ctx context.Context, e events.Event) {
	var r RunRequest
	if err := json.Unmarshal(e.Payload, &r); err != nil {
		s.refuse(ctx, e, NameRunResponse, agent.Usagef("the request is not valid: %v", err))
		return
	}
	if r.RunID == "" {
		r.RunID = e.ID
	}
	if err := s.settle(&r, e.Timestamp); err != nil {
		s.refuse(ctx, e, NameRunResponse, err)
		return
	}
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !s.begin(r.RunID, cancel) {
		return // it was delivered before
	}
	defer s.end(r.RunID)
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-running.Done():
	}
	limited, lift := context.WithTimeout(running, r.Timeout())
	defer lift()
	begun := time.Now()
	exit, err := Exit{Code: -1}, context.Cause(running)
	if err == nil {
		err = expired(&r, e.Timestamp)
	}
	if err == nil {
		exit, err = s.Engine.Run(limited, r)
	}
	response := RunResponse{
		RunID: r.RunID, RunnerName: s.Name, Image: r.Image, Args: r.command(), ExitCode: exit.Code, Stdout: exit.Stdout, Stderr: exit.Stderr,
		DurationMS: time.Since(begun).Milliseconds(), Runtime: s.Engine.Name(),
	}
	switch {
	case errors.Is(context.Cause(running), errDeleted):
		response.State = StateDeleted
	case ctx.Err() != nil && (err != nil || exit.Code < 0):
		s.refuse(ctx, e, NameRunResponse, errInterrupted)
		return
	case err != nil:
		s.refuse(ctx, e, NameRunResponse, err)
		return
	case limited.Err() != nil:
		response.State = StateTimeout
	case exit.Code == 0:
		response.State = StateCompleted
	default:
		response.State = StateFailed
	}
	s.publish(ctx, e, NameRunResponse, response, nil)
}

// settle checks a request of a time and gives it the image of its profile.
func (s *serving) settle(r *RunRequest, at time.Time) error {
	if err := r.Check(); err != nil {
		return err
	}
	if err := expired(r, at); err != nil {
		return err
	}
	if r.Profile != "" {
		image, ok := s.Profiles[r.Profile]
		if !ok {
			return agent.Usagef("profile %q is unknown", r.Profile)
		}
		r.Image = image
	}
	return nil
}

// expired fails for a request whose client no longer waits.
func expired(r *RunRequest, at time.Time) error {
	if !at.IsZero() && time.Since(at) > r.Timeout()+clockTolerance {
		return errors.New("the request has expired")
	}
	return nil
}

// clockTolerance is how much the clocks of client and integration may differ.
const clockTolerance = time.Minute

// begin notes that a run begins. It returns false if its request was seen before.
func (s *serving) begin(id string, cancel context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.knownRun(id)
	if k.seen {
		return false
	}
	k.seen, k.cancel = true, cancel
	if k.deleted {
		cancel(errDeleted)
	}
	return true
}

func (s *serving) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.knownRun(id).cancel = nil
}

// knownRun returns the record of a run; s.mu is held.
func (s *serving) knownRun(id string) *known {
	k := s.known[id]
	if k == nil {
		k = new(known)
		s.known[id] = k
		s.order = append(s.order, id)
		if len(s.order) > maxKnown {
			delete(s.known, s.order[0])
			s.order = s.order[1:]
		}
	}
	return k
}

// deleteRun ends a run. Every integration gets the request; the one that has the run
// answers.
func (s *serving) deleteRun(ctx context.Context, e events.Event) {
	var r DeleteRequest
	if err := json.Unmarshal(e.Payload, &r); err != nil || !runIDForm().MatchString(r.RunID) {
		return // not a request that any integration can answer
	}
	if !e.Timestamp.IsZero() && time.Since(e.Timestamp) > MaxTimeout+clockTolerance {
		return // the request for the run has expired
	}
	s.mu.Lock()
	k := s.knownRun(r.RunID)
	k.deleted = true
	cancel := k.cancel
	s.mu.Unlock()
	if cancel != nil {
		cancel(errDeleted)
		s.publish(ctx, e, NameDeleteResponse, DeleteResponse{Deleted: true, RunID: r.RunID}, nil)
	}
}

// refuse answers a request with an error.
func (s *serving) refuse(ctx context.Context, e events.Event, name string, err error) {
	failure := &events.Failure{Code: "run_failed", Message: err.Error()}
	switch {
	case errors.Is(err, agent.ErrUsage):
		failure.Code = "bad_request"
	case errors.Is(err, errInterrupted):
		failure.Code = CodeInterrupted
	case errors.Is(err, errBusy):
		failure.Code = CodeBusy
	}
	s.publish(ctx, e, name, nil, failure)
}

// publishLimit bounds the publishing of a response after the end of Serve's context.
const publishLimit = 5 * time.Second

func (s *serving) publish(ctx context.Context, to events.Event, name string, payload any, failure *events.Failure) {
	text, err := json.Marshal(payload)
	if err == nil {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishLimit)
		defer cancel()
		_, err = s.Bus.Publish(bounded, events.Draft{Name: name, CorrelationID: to.CorrelationID, Source: Source, Payload: text, Error: failure})
	}
	if err != nil && s.Failed != nil {
		s.Failed(fmt.Errorf("answer to %s of %s: %w", to.ID, to.Name, err))
	}
}
