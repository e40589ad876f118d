package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
)

// Why a run of ours was stopped; the cause of its context.
var (
	errTimeout    = errors.New("timeout")
	errIdle       = errors.New("idle timeout")
	errRefused    = errors.New("authentication refused")
	errDoneNoExit = errors.New("the agent did not exit after its result")
	errCallback   = errors.New("a callback did not return")
)

// resultSilence is how long an agent may be silent after its result before it is ended.
const resultSilence = 5 * time.Second

// stderrTailSize bounds the standard error in an error, in bytes.
const stderrTailSize = 4 << 10

// Run runs one agent to its end. It returns when the agent's process and all its
// descendants are gone and their output is read. When ctx ends, the agent gets SIGTERM,
// and SIGKILL after five seconds. Run always waits for the writers and functions of
// out: it calls none after it returned. A panic in one ends the agent and continues in
// Run's caller.
//
// The Result has what is known, with an error too. The error is an [*agent.Error]; see
// its kinds. One of kind agent.ErrUsage, ErrNotInstalled or ErrNoneAvailable means that
// nothing was started.
func (r *Runner) Run(ctx context.Context, req agent.Request, out agent.Output) (agent.Result, error) {
	result := agent.Result{ExitCode: -1}
	if err := context.Cause(ctx); err != nil {
		return result, canceled(req.Runtime, err)
	}
	p, err := r.prepareOrRecord(ctx, req, out, forRun)
	if err != nil {
		result.Runtime, result.Model, result.Warnings, result.RunID = p.req.Runtime, p.req.Model, p.warnings, p.recording.RunID
		return result, err
	}
	return p.runAndRecord(ctx, r)
}

// runAndRecord runs the agent and ends its record, also if a callback panics.
func (p *prepared) runAndRecord(ctx context.Context, r *Runner) (result agent.Result, err error) {
	defer p.finish()
	result = agent.Result{Runtime: p.req.Runtime, Model: p.req.Model, ExitCode: -1}
	if err = p.recordOrClose(ctx, r); err != nil {
		result.RunID, result.Warnings = p.recording.RunID, p.warnings
		return result, err
	}
	panicked := result
	defer func() { _ = p.recorded(p.after(ctx), &panicked, canceled(p.req.Runtime, errPanicked)) }() // unless it was
	result, err = p.runAndClose(ctx)
	result.Warnings, result.RunID = p.warnings, p.recording.RunID
	if err == nil && p.out.Check != nil {
		p.finish() // the time of the check is not that of the record
		err = p.wrap(agent.ErrAgent, p.out.Check(ctx, &result))
	}
	err = p.recorded(p.after(ctx), &result, err)
	result.Warnings = p.warnings
	return result, err
}

// runAndClose runs the agent and cleans up.
func (p *prepared) runAndClose(ctx context.Context) (agent.Result, error) {
	defer p.cleanUp(ctx)
	return p.run(ctx)
}

func (p *prepared) run(parent context.Context) (agent.Result, error) {
	if err := context.Cause(parent); err != nil {
		return agent.Result{Runtime: p.req.Runtime, Model: p.req.Model, ExitCode: -1}, canceled(p.req.Runtime, err)
	}
	if p.out.Started != nil {
		p.out.Started(p.start())
	}
	environ := p.maskedEnviron()
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	begun := time.Now()
	o := newOutput(p, cancel)
	deadline := time.AfterFunc(p.req.Timeout, func() { o.limit(errTimeout) })
	defer deadline.Stop()
	idle := p.req.IdleTimeout
	if p.selection.Runtime.Run.Options.IdleTimeout {
		idle = 0 // the CLI watches it
	}
	o.retries.begin()
	stopWatch := o.watch(limits{silence: p.silence, idle: idle})
	exit, runErr := process.Run(ctx, process.Spec{
		Path:   p.selection.Path,
		Args:   p.command.Args,
		Env:    environ,
		Dir:    p.req.Workdir,
		Stdin:  p.command.Stdin,
		Files:  p.files(),
		Stdout: o.stdoutWriter(),
		Stderr: o.stderrWriter(),
		Started: func(pid int, identity string) {
			_ = o.panics.guard(func() error { p.started(pid, identity); return nil }) // it is thrown again below
		},
		EmptyDirs: p.selection.Runtime.EmptyDirs,
	})
	stopWatch()
	o.retries.close()
	if err := o.close(); runErr == nil {
		runErr = err
	}
	if err := o.panics.rethrow(); err != nil {
		runErr = err
	}

	result := o.result()
	if complete := p.setup.Complete; complete != nil {
		p.after(parent)
		complete(&result)
	}
	result.Runtime = p.req.Runtime
	result.Model, result.SessionID = oneLine(result.Model), oneLine(result.SessionID)
	if result.Model == "" {
		result.Model = p.req.Model
	}
	result.Duration = time.Since(begun)
	result.ExitCode, result.Signal = exit.Code, exit.Signal
	if exit.Survived > 0 {
		p.warn(fmt.Sprintf("%d processes of the run could not be ended", exit.Survived))
	}
	var cause error
	if exit.Stopped {
		// Otherwise the agent exited before it was stopped.
		cause = context.Cause(ctx)
	}
	err := p.verdict(cause, runErr, &result, o)
	return result, err
}

// verdict returns the error of a run that has ended.
func (p *prepared) verdict(cause, runErr error, result *agent.Result, o *output) error {
	fail := func(kind, err error) error {
		return &agent.Error{Kind: kind, Runtime: p.req.Runtime, Err: err}
	}
	exit := &agent.ExitError{
		Code:   result.ExitCode,
		Signal: result.Signal,
		Reason: o.reason(),
		Stderr: o.errorTail.lines(p.selection.Runtime.QuietStderr),
	}
	var startErr *process.StartError
	switch {
	case errors.As(runErr, &startErr):
		return fail(agent.ErrAgent, cannotStart(p.selection, startErr.Err))
	case errors.Is(cause, errDoneNoExit) && runErr == nil:
		p.warn("the agent reported its result but did not exit; it was ended")
		result.ExitCode, result.Signal = 0, ""
		exit.Code, exit.Signal = 0, ""
	case errors.Is(cause, errTimeout):
		return fail(agent.ErrTimeout, &stopped{fmt.Sprintf("no result within %v; the agent was ended", p.req.Timeout) + o.lastFailure(), exit})
	case errors.Is(cause, errIdle):
		return fail(agent.ErrIdleTimeout, &stopped{fmt.Sprintf("no progress for %v; the agent was ended", p.req.IdleTimeout) + o.lastFailure(), exit})
	case errors.Is(cause, errRefused):
		return fail(agent.ErrAuthentication, &stopped{cmp.Or(exit.Reason, "the login was refused") + "; the agent was ended", exit})
	case errors.Is(runErr, errCallback):
		return fail(agent.ErrCanceled, errors.New("a callback ended its goroutine, the agent was ended"))
	case runErr != nil:
		kind := agent.ErrCanceled
		if errors.Is(cause, context.DeadlineExceeded) { // which may be why the writer failed
			kind = agent.ErrTimeout
		}
		return fail(kind, fmt.Errorf("output could not be passed on, the agent was ended: %w", runErr))
	case cause != nil:
		return canceled(p.req.Runtime, cause)
	}
	failure := o.failure()
	switch succeeded := o.succeeded(p.selection.Runtime.ReportsResult); {
	case result.ExitCode == 0 && result.Signal == "" && succeeded:
		var failed bool
		if failure, failed = p.answerFailure(result.Text, o); !failed {
			return nil
		}
		exit.Reason = cmp.Or(o.quote(strings.TrimSpace(result.Text)), "the agent ended without an answer")
	case exit.Reason == "" && result.ExitCode == 0:
		exit.Reason = "the agent ended without a result"
		if o.last != nil {
			exit.Reason = "the agent failed without a reason"
		}
	}
	return fail(p.failureKind(failure, exit), exit)
}

// answerFailure reports whether a run that ended as a success has failed all the same.
func (p *prepared) answerFailure(answer string, o *output) (failure agent.Failure, failed bool) {
	isFailure := p.selection.Runtime.AnswerFailure
	if isFailure == nil || strings.TrimSpace(answer) == "" && o.active {
		return "", false
	}
	return isFailure(answer)
}

func (p *prepared) failureKind(failure agent.Failure, exit *agent.ExitError) error {
	if failure == "" && p.selection.Runtime.ExitFailure != nil {
		failure = p.selection.Runtime.ExitFailure(exit)
	}
	switch failure {
	case agent.FailureAuthentication:
		return agent.ErrAuthentication
	case agent.FailureQuota:
		return agent.ErrQuota
	case agent.FailureIdleTimeout:
		return agent.ErrIdleTimeout
	}
	return agent.ErrAgent
}

// canceled returns the error of a run whose context ended with cause.
func canceled(token string, cause error) error {
	kind := agent.ErrCanceled
	if errors.Is(cause, context.DeadlineExceeded) {
		kind = agent.ErrTimeout
	}
	return &agent.Error{Kind: kind, Runtime: token, Err: fmt.Errorf("the run was stopped: %w", cause)}
}

// stopped is the error of a run that bus-agent ended.
type stopped struct {
	text string
	exit *agent.ExitError
}

func (s *stopped) Error() string { return s.text }
func (s *stopped) Unwrap() error { return s.exit }
