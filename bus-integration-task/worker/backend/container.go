package backend

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"

	"github.com/busdk/bus-integration-task/closeout"
	"github.com/busdk/bus-integration-task/events"
	"github.com/busdk/bus-integration-task/worker/backend/containers"
	"github.com/busdk/bus-integration-task/worker/backend/internal/excerpt"
)

// Container is the backend that runs the commands of an attempt in containers, through a
// container integration; see package containers for the protocol. Each command is one
// run. A command is run only if the one before ended with exit code 0. Session settings
// of an attempt, such as its prompt and model, have no effect, and Attempt.Env has none
// either: values of variables would be in the log of events.
type Container struct {
	// Bus carries the requests; *events.Client is one.
	Bus containers.Bus

	// Profile, or else Image, is what the containers are made of.
	Profile string
	Image   string

	// Mounts are the folders of the host that the containers have besides
	// Attempt.Workdir, which is writable unless the sandbox is ReadOnly, and
	// Attempt.Surroundings. What links in these lead to must be among them.
	Mounts []containers.Mount

	// HostPath returns the path of a folder on the machine of the integration; nil if
	// it is the same.
	HostPath func(path string) string

	// Env are names of variables that the integration passes on.
	Env []string

	// Source is the source of the requests.
	Source string

	// Recorder, for example runs.Records, makes one record of each attempt, whose
	// runtime is "container" and whose standard output and error are those of all
	// commands. Nil makes none.
	Recorder agent.Recorder
}

// Commands are the commands of an attempt: programs with their arguments, without a
// shell. Before and After may be empty.
type Commands struct {
	Before []string // before the main command
	Main   []string
	After  []string // after a main command that succeeded
}

// answerGrace is how long the response to a run may take after the time of the command
// is over.
const answerGrace = 30 * time.Second

// deleteLimit bounds the publishing of a request to delete a run.
const deleteLimit = 5 * time.Second

// Start starts an attempt; see [Backend.Start].
func (b *Container) Start(ctx context.Context, a Attempt, l Listener) (Running, error) {
	switch {
	case (b.Profile == "") == (b.Image == ""):
		return nil, agent.Usagef("a container needs either a profile or an image; nothing was started")
	case !filepath.IsAbs(a.Workdir):
		return nil, agent.Usagef("workdir %q is not absolute; nothing was started", a.Workdir)
	case a.Surroundings != "" && !inside(a.Surroundings, a.Workdir):
		return nil, agent.Usagef("workdir %q is not in its surroundings %q; nothing was started", a.Workdir, a.Surroundings)
	case len(a.Commands.Main) == 0:
		return nil, agent.Usagef("the command of the container is empty; nothing was started")
	}
	if _, err := ParseSandbox(string(cmp.Or(a.Sandbox, WorkspaceWrite))); err != nil {
		return nil, err
	}
	r := &containerAttempt{
		backend: b, given: a, begun: time.Now(), done: make(chan struct{}),
		environ: slices.Concat(inherited(nil), a.Env, a.Hidden),
	}
	r.report = newReporter(l, runner.NewMasker(r.environ))
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	go r.run()
	return r, nil
}

// inside reports whether a path is below a folder, both absolute.
func inside(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsAbs(folder) && filepath.IsLocal(rel) && rel != "."
}

// containerAttempt is a Running of a Container.
type containerAttempt struct {
	backend *Container
	given   Attempt
	environ []string // has the secrets to be masked
	report  *reporter
	record  agent.Recording
	begun   time.Time
	ctx     context.Context // until it is stopped
	cancel  context.CancelCauseFunc
	done    chan struct{}
	closing sync.Once
	outcome Outcome // once done is closed
}

// run runs the commands and records them.
func (r *containerAttempt) run() {
	defer close(r.done)
	r.report.notice("starting container task backend")
	timeout := min(cmp.Or(r.given.Timeout, containers.MaxTimeout), containers.MaxTimeout)
	ctx, cancel := context.WithTimeoutCause(r.ctx, timeout, &agent.Error{
		Kind: agent.ErrTimeout, Err: fmt.Errorf("the attempt took longer than %v", timeout),
	})
	defer cancel()
	o := &r.outcome
	o.Runtime = NameContainer
	r.deletePrevious()
	err := r.beginRecord(ctx)
	if err == nil {
		r.opened()
		err = r.runAll(ctx)
		o.Duration = time.Since(r.begun)
		err = r.endRecord(err)
	}
	o.Result, o.Err, o.Duration = resultOf(err), err, time.Since(r.begun)
	if err == nil {
		r.report.notice("container run completed")
	}
	r.report.flush()
}

// runAll runs the commands until one fails.
func (r *containerAttempt) runAll(ctx context.Context) error {
	c := r.given.Commands
	for i, command := range [][]string{c.Before, c.Main, c.After} {
		if len(command) == 0 {
			continue
		}
		response, err := r.runCommand(ctx, i, command)
		if i == 1 {
			r.outcome.Text = r.masked(response.Stdout)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// opened reports the record before anything runs, so that the next attempt knows the runs
// of this one if the worker is killed.
func (r *containerAttempt) opened() {
	if f := r.report.listener.Opened; f != nil && r.outcome.RunID != "" {
		r.report.call(func() { f(Conversation{Runtime: NameContainer, RunID: r.outcome.RunID}) })
		r.report.flush()
	}
}

// deletePrevious requests that the runs of the attempt before are deleted: those of a
// worker that was killed would continue in an integration that was not.
func (r *containerAttempt) deletePrevious() {
	if previous := r.given.Labels.Previous; previous != "" {
		for n := range commandsOfAttempt {
			r.deleteRun(runID(previous, n))
		}
	}
}

// commandsOfAttempt is the number of commands in Commands.
const commandsOfAttempt = 3

// runID returns the ID of the run of a command: that of the record of its attempt, if it
// has one, and the number of the command.
func runID(record string, n int) string {
	if record == "" {
		return engine.NewUUID()
	}
	return fmt.Sprintf("%s.%d", record, n)
}

// runCommand runs one command in a container.
func (r *containerAttempt) runCommand(ctx context.Context, n int, command []string) (containers.RunResponse, error) {
	text := line(r.report.mask.Text(strings.Join(command, " ")), maxSummary)
	r.report.progress("running: " + text)
	response, err := r.request(ctx, n, command)
	if err != nil {
		return response, err
	}
	if err := r.recordOutput(&response); err != nil {
		return response, err
	}
	if out := r.masked(response.Stdout); out != "" {
		r.report.message(response.RunID, out, false)
	}
	r.report.progress(fmt.Sprintf("exit code %d: %s", response.ExitCode, text))
	masked := make([]string, len(command))
	for i, word := range command {
		masked[i] = r.report.mask.Text(word)
	}
	full := closeout.CommandLine(masked) // a prompt in it is one word, not commands
	r.outcome.Commands = append(r.outcome.Commands, closeout.Command{
		Line:   line(full, closeout.MaxCommand),
		Passed: response.State == containers.StateCompleted && len(full) <= closeout.MaxCommand, ExitCode: &response.ExitCode,
	})
	switch response.State {
	case containers.StateCompleted:
		return response, nil
	case containers.StateTimeout:
		return response, &agent.Error{Kind: agent.ErrTimeout, Err: fmt.Errorf("command %q took too long", text)}
	case containers.StateDeleted:
		return response, &agent.Error{Kind: agent.ErrCanceled, Err: errors.New("the container was deleted")}
	}
	reason := line(r.masked(response.Stderr), maxSummary)
	if reason != "" {
		reason = ": " + reason
	}
	return response, &agent.Error{Kind: agent.ErrAgent, Err: fmt.Errorf("command %q ended with exit code %d%s", text, response.ExitCode, reason)}
}

// masked returns the beginning and the end of an output, without secrets.
func (r *containerAttempt) masked(output string) string {
	short := excerpt.Text{Limit: MaxText}
	_, _ = short.WriteString(r.report.mask.Text(output)) // into memory
	return strings.TrimSpace(short.Take())
}

// errAnswered ends the stream of responses.
var errAnswered = errors.New("answered")

// request publishes the request for a run and waits for its response. If ctx ends, it
// requests that the run is deleted.
func (r *containerAttempt) request(ctx context.Context, n int, command []string) (containers.RunResponse, error) {
	request := r.runRequest(ctx, n, command)
	payload, err := json.Marshal(request)
	if err != nil {
		return containers.RunResponse{}, err
	}
	draft := events.Draft{Name: containers.NameRunRequest, CorrelationID: request.RunID, Source: r.backend.Source, Payload: payload}
	published, err := r.backend.Bus.Publish(ctx, draft)
	if err != nil {
		r.deleteRun(request.RunID) // it may have been stored
		return containers.RunResponse{}, failed(ctx, fmt.Errorf("the container cannot be requested: %w", err))
	}
	// The command has its limit in the request; waiting ends later, so that the
	// response with the output arrives.
	waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(request.TimeoutSeconds)*time.Second+answerGrace)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	var response containers.RunResponse
	var refused error
	query := events.Query{Names: []string{containers.NameRunResponse}, AfterID: published.ID}
	err = r.backend.Bus.Stream(waiting, query, func(e events.Event) error {
		if e.CorrelationID != request.RunID {
			return nil
		}
		if e.Error != nil {
			r.outcome.Retryable = e.Error.Code == containers.CodeInterrupted
			refused = &agent.Error{Kind: agent.ErrAgent, Err: fmt.Errorf("the container was not run: %s", line(r.report.mask.Text(e.Error.Message), maxSummary))}
		} else if err := json.Unmarshal(e.Payload, &response); err != nil {
			refused = &agent.Error{Kind: agent.ErrAgent, Err: fmt.Errorf("the response of the container cannot be read: %w", err)}
		}
		return errAnswered
	})
	if errors.Is(err, errAnswered) {
		return response, refused
	}
	r.deleteRun(request.RunID)
	if r.ctx.Err() == nil && waiting.Err() != nil {
		return response, &agent.Error{Kind: agent.ErrTimeout, Err: errors.New("the container integration did not answer in time")}
	}
	return response, failed(r.ctx, fmt.Errorf("the response of the container was lost: %w", err))
}

// failed gives err the kind that ctx has.
func failed(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if _, ok := errors.AsType[*agent.Error](cause); ok {
		return cause
	}
	if cause != nil {
		return &agent.Error{Kind: agent.ErrCanceled, Err: cause}
	}
	return &agent.Error{Kind: agent.ErrAgent, Err: err}
}

// runRequest returns the request for the run of a command.
func (r *containerAttempt) runRequest(ctx context.Context, n int, command []string) containers.RunRequest {
	b := r.backend
	host := b.HostPath
	if host == nil {
		host = func(path string) string { return path }
	}
	deadline, _ := ctx.Deadline()
	request := containers.RunRequest{
		RunID: runID(r.outcome.RunID, n), Profile: b.Profile, Image: b.Image, Workdir: r.given.Workdir, Env: b.Env,
		TimeoutSeconds: max(1, int(time.Until(deadline).Round(time.Second).Seconds())),
		Labels:         map[string]string{},
	}
	maps.Copy(request.Labels, r.given.Tags)
	for name, value := range map[string]string{"project": r.given.Labels.Project, "task": r.given.Labels.Task} {
		if value != "" {
			request.Labels[name] = value
		}
	}
	for _, m := range b.Mounts {
		m.Source = host(m.Source)
		request.Mounts = append(request.Mounts, m)
	}
	if around := r.given.Surroundings; around != "" {
		request.Mounts = append(request.Mounts, containers.Mount{Source: host(around), Target: around, ReadOnly: true})
	}
	request.Mounts = append(request.Mounts, containers.Mount{
		Source: host(r.given.Workdir), Target: r.given.Workdir, ReadOnly: r.given.Sandbox == ReadOnly,
	})
	if b.Profile != "" {
		request.Args = command
	} else {
		request.Command = command
	}
	return request
}

// deleteRun requests that a run is ended. An integration that does not get the request
// ends the run when its time is over.
func (r *containerAttempt) deleteRun(runID string) {
	payload, err := json.Marshal(containers.DeleteRequest{RunID: runID})
	if err != nil {
		return // cannot happen for a string
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), deleteLimit)
	defer cancel()
	draft := events.Draft{Name: containers.NameDeleteRequest, CorrelationID: runID, Source: r.backend.Source, Payload: payload}
	if _, err := r.backend.Bus.Publish(ctx, draft); err != nil {
		r.report.notice(fmt.Sprintf("the container %s cannot be deleted: %v", runID, err))
	}
}

func (r *containerAttempt) Done() <-chan struct{} { return r.done }

func (r *containerAttempt) Outcome() Outcome {
	<-r.done
	return r.outcome
}

// Stop ends the attempt. The container may still be ending when it returns.
func (r *containerAttempt) Stop(_ context.Context, reason string) Outcome {
	r.cancel(errors.New(cmp.Or(reason, "the attempt was stopped")))
	<-r.done
	r.closing.Do(r.report.close)
	return r.outcome
}

// Interrupt ends the attempt.
func (r *containerAttempt) Interrupt(context.Context) error {
	r.cancel(errors.New("the attempt was interrupted"))
	return nil
}

// Say returns ErrUnsupported: a command reads no messages.
func (r *containerAttempt) Say(context.Context, string) (Delivery, error) { return "", ErrUnsupported }

// Ask returns ErrUnsupported.
func (r *containerAttempt) Ask(context.Context, string) (string, error) { return "", ErrUnsupported }

// Answer returns ErrNotPending: a command makes no approval requests.
func (r *containerAttempt) Answer(context.Context, string, session.Decision) error {
	return ErrNotPending
}
