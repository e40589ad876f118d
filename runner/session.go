package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// runOnly are the fields of a request that only a run supports.
var runOnly = []string{"Continue", "MaxTurns", "IdleTimeout", "CaptureLimit", "Schema"}

// StartSession starts an agent and opens a session with it. The request is like
// that of a run: its Prompt, which may be empty, is the first message, Resume the
// session to continue, and Timeout bounds the opening. Continue, MaxTurns,
// IdleTimeout, CaptureLimit and Schema must not be set.
//
// In session.ModeTmux the runtime's interactive CLI runs in a terminal that
// Runner.OpenTerminal opens. Options.Stderr must not be set then.
//
// The agent runs until [session.Session.Stop] or its own end; ctx bounds only the
// opening. The errors are those of [Runner.Run].
func (r *Runner) StartSession(ctx context.Context, req agent.Request, options session.Options) (*session.Session, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, canceled(req.Runtime, err)
	}
	purpose, err := r.sessionPurpose(req, options)
	if err != nil {
		return nil, err
	}
	p, err := r.prepareOrRecord(ctx, req, agent.Output{Started: options.Started, Stderr: options.Stderr}, purpose)
	if err != nil {
		return nil, err
	}
	if err := p.recordOrClose(ctx, r); err != nil {
		return nil, err
	}
	var s *session.Session
	if purpose == forTerminal {
		s, err = p.openTerminal(ctx, r.terminals(), options)
	} else {
		s, err = p.open(ctx, options)
	}
	return p.begin(s, err)
}

// CheckSession returns the error of StartSession that is in the request and the settings
// alone. It writes nothing, and looks at no folder of the repository but to find AGENTS.md.
// Runner.Warn receives warnings only with an error, because StartSession has them too.
func (r *Runner) CheckSession(ctx context.Context, req agent.Request, options session.Options) error {
	purpose, err := r.sessionPurpose(req, options)
	if err != nil {
		return err
	}
	var warnings []string
	quiet := *r
	quiet.Warn = func(line string) { warnings = append(warnings, line) }
	_, err = quiet.resolveRequest(ctx, req, agent.Output{}, purpose)
	if err != nil {
		for _, line := range warnings {
			r.warn(line)
		}
	}
	return err
}

// sessionPurpose returns what a session with the options is prepared for.
func (r *Runner) sessionPurpose(req agent.Request, options session.Options) (purpose, error) {
	mode, err := session.ParseMode(string(options.Mode))
	if err == nil {
		err = options.CheckAccess(req.Access)
	}
	switch {
	case err != nil:
		return 0, err
	case mode != session.ModeTmux:
		return forSession, nil
	case options.Stderr != nil:
		return 0, agent.Usagef("an agent in mode tmux has no standard error, so Options.Stderr has no use; nothing was started")
	case r.terminals() == nil:
		return 0, agent.Usagef("%w; nothing was started", session.ErrNoTerminals)
	}
	return forTerminal, nil
}

// begin sends the first message to a session that was opened.
func (p *prepared) begin(s *session.Session, err error) (*session.Session, error) {
	if err == nil && p.inv.Prompt != "" {
		s.Send(session.Message{Text: p.inv.Prompt, Attachments: p.req.Attachments})
	}
	return s, err
}

// open starts the agent and opens a session with it.
func (p *prepared) open(ctx context.Context, options session.Options) (*session.Session, error) {
	record := &sessionRecording{prepared: p, begun: time.Now()}
	record.watch(&options)
	environ := p.maskedEnviron()
	p.announce(ctx, record)
	output, fromAgent := io.Pipe()
	a := &sessionAgent{prepared: p, output: fromAgent, stderr: newStderrTail(p.secrets), done: make(chan struct{})}
	a.retries = p.watchRetries(&options, a.running)
	a.retryLine = a.retries.lines()
	callbacks := panics{stop: func(error) {}}
	var err error
	a.process, err = process.Start(context.WithoutCancel(ctx), process.Spec{
		Path:        p.selection.Path,
		Args:        p.command.Args,
		Env:         environ,
		Dir:         p.req.Workdir,
		Interactive: true,
		Files:       p.files(),
		Stdout:      p.recordedStdout(fromAgent),
		Stderr:      writerFunc(a.writeStderr),
		Started: func(pid int, identity string) {
			_ = callbacks.guard(func() error { p.started(pid, identity); return nil }) // it is thrown again below
		},
		EmptyDirs: p.selection.Runtime.EmptyDirs,
	})
	if err != nil {
		p.close(ctx)
		err = &agent.Error{Kind: agent.ErrAgent, Runtime: p.req.Runtime, Err: cannotStart(p.selection, err)}
		record.end(engine.Info{}, -1, "", err)
		return nil, err
	}
	if callbacks.happened() {
		output.CloseWithError(errPanicked)
		a.Stop()
		a.wait()
		record.end(engine.Info{}, a.exit.Code, a.exit.Signal, canceled(p.req.Runtime, errPanicked))
		return nil, callbacks.rethrow()
	}
	record.setStop(a.Stop)
	go a.wait()
	opening, cancel := context.WithTimeout(ctx, p.req.Timeout)
	defer cancel()
	transport := engine.Transport{Input: a.process.Input(), Output: output, EndTools: a.process.EndTools}
	recorded := &recordedAgent{sessionAgent: a, recorded: make(chan struct{})}
	s, err := session.Open(opening, p.req.Runtime, p.selection.Runtime.Session.Engine(p.inv), recorded, transport, p.sessionStart(options), options)
	if err != nil {
		err = a.explain(err)
		record.end(engine.Info{}, a.exit.Code, a.exit.Signal, err)
		return nil, err
	}
	a.session.Store(s)
	recorded.follow(s, record)
	return s, nil
}

// announce calls Output.Started. If that does not return, nothing of the session is left.
func (p *prepared) announce(ctx context.Context, record *sessionRecording) {
	returned := false
	defer func() {
		if !returned {
			p.close(ctx)
			record.end(engine.Info{}, -1, "", canceled(p.req.Runtime, errPanicked))
		}
	}()
	if p.out.Started != nil {
		p.out.Started(p.start())
	}
	returned = true
}

// recordedStdout returns a writer that passes output to the recorder first.
func (p *prepared) recordedStdout(engine io.Writer) io.Writer {
	if p.recording.Stdout == nil {
		return engine
	}
	return writerFunc(func(b []byte) (int, error) { return len(b), pass(b, p.recording.Stdout, engine) })
}

// sessionStart returns the parameters of the session.
func (p *prepared) sessionStart(options session.Options) engine.Start {
	start := engine.Start{
		Workdir: p.inv.Workdir, Resume: p.inv.Resume, Created: options.Created,
		Model: p.inv.Model, Effort: p.inv.ReasoningEffort, Access: p.inv.Access, AddDirs: p.inv.AddDirs, Protected: p.protected,
		MCPServers:  p.inv.MCPServers,
		Attachments: p.use.Options.Attachments, Prefix: p.setup.Prefix, SlashCommands: p.use.SlashCommands,
	}
	if !p.setup.SessionCreated.IsZero() {
		start.Created = p.setup.SessionCreated
	}
	return start
}

// sessionAgent is the process behind a session.
type sessionAgent struct {
	*prepared
	process *process.Process
	output  *io.PipeWriter
	stderr  *stderrTail
	retries *retries
	session atomic.Pointer[session.Session] // once it is open
	exit    *agent.ExitError                // once done is closed
	stopped bool                            // it was ended; like exit
	done    chan struct{}

	retryLine *formatters.Lines // finds repeated requests in standard error; may be nil
}

func (a *sessionAgent) Stop() { a.process.Stop() }

func (a *sessionAgent) Done() <-chan struct{} { return a.done }

// PID is for session.Session.PID.
func (a *sessionAgent) PID() int { return a.process.Pid() }

// Mask is for errors of session.Session.
func (a *sessionAgent) Mask(text string) string { return a.secrets.Text(text) }

// running reports whether the agent has a turn.
func (a *sessionAgent) running() bool {
	s := a.session.Load()
	return s != nil && s.State() == session.StateRunning
}

func (a *sessionAgent) writeStderr(b []byte) (int, error) {
	_, _ = a.stderr.Write(b)
	if a.retryLine != nil {
		_, _ = a.retryLine.Write(b)
	}
	return len(b), pass(b, a.recording.Stderr, a.out.Stderr)
}

// wait waits for the end of the agent and cleans up.
func (a *sessionAgent) wait() {
	exit, err := a.process.Wait()
	a.stopped = exit.Stopped
	a.exit = &agent.ExitError{
		Code: exit.Code, Signal: exit.Signal,
		Stderr: a.stderr.lines(a.selection.Runtime.QuietStderr),
	}
	switch {
	case err != nil:
		a.output.CloseWithError(fmt.Errorf("output could not be passed on: %w", err))
	case exit.Code != 0 && !exit.Stopped:
		a.output.CloseWithError(a.exit)
	default:
		a.output.Close()
	}
	if exit.Survived > 0 {
		a.warn(fmt.Sprintf("%d processes of the session could not be ended", exit.Survived))
	}
	a.retries.close()
	a.close(context.Background())
	close(a.done)
}

// explain adds the agent's exit, and the class of failure it means, to the error of a
// session that was not opened.
func (a *sessionAgent) explain(err error) error {
	e, ok := errors.AsType[*agent.Error](err)
	if !ok {
		return err
	}
	kind := e.Kind
	if kind == agent.ErrAgent {
		kind = a.failureKind("", a.exit)
	}
	cause := e.Err
	if _, explained := errors.AsType[*agent.ExitError](err); !explained {
		cause = &notOpened{e.Err, a.exit}
	}
	return &agent.Error{Kind: kind, Runtime: e.Runtime, Err: cause}
}

// notOpened is why a session could not be opened, with the exit of its agent.
type notOpened struct {
	error
	exit *agent.ExitError
}

func (e *notOpened) Unwrap() []error { return []error{e.error, e.exit} }
