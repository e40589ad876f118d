package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
)

// ErrNoOrder is the error of [Serve] in a process that no [Client] has started.
var ErrNoOrder = errors.New("this process was not started to hold a session")

// Serve holds the session that a [Client] has started this process for, until the
// session or ctx ends. A program that is the [Program] of a Client calls it when it
// is run so:
//
//	err := control.Serve(ctx, os.Stdin, func(s control.Settings, warn func(string)) (*control.Manager, error) {
//		return &control.Manager{Runner: &runner.Runner{Warn: warn}}, nil
//	})
//
// setup returns the manager that starts the session, with any Runner; Serve sets its
// fields Store and Serve. warn reports a line to the client while the session starts.
// Serve returns when all processes of the session have ended. The error is why the
// session could not be started; the client receives it too.
//
// Standard error is the log of the session. The process should adopt orphaned
// descendants: see [runner.AdoptOrphans].
func Serve(ctx context.Context, input io.Reader, setup func(s Settings, warn func(string)) (*Manager, error)) error {
	var what order
	if err := json.NewDecoder(input).Decode(&what); err != nil || what.Version != protocolVersion {
		return ErrNoOrder
	}
	report := newReporter()
	m, err := setup(what.settings(), func(line string) { report.report(Report{Warning: line}) })
	if err != nil {
		report.fail(err)
		return err
	}
	m.Store, m.Serve, m.ends = NewStore(what.Dir), true, true
	environ := m.environ()
	for name, value := range what.Options.Env {
		environ = append(slices.Clip(environ), name+"="+value)
	}
	log := runner.NewMaskWriter(&boundedLog{file: os.Stderr}, environ)
	defer log.Flush() // a log never fails
	options := session.Options{Started: func(start agent.Start) {
		report.report(Report{Runtime: start.Runtime, Model: start.Model, RunID: start.RunID})
	}}
	if what.settings().Mode != session.ModeTmux { // a terminal has no standard error
		options.Stderr = log
	}
	r := *m.runner()
	r.Recorder = agent.Recorders(r.Recorder, report)
	m.Runner = &r
	h, err := m.hold(ctx, &what, options)
	if err != nil {
		report.fail(err)
		return err
	}
	report.report(Report{Ready: true})
	select {
	case <-h.over:
	case <-ctx.Done():
		h.stop(context.WithoutCancel(ctx), context.Cause(ctx).Error())
	}
	return nil
}

// settings returns the settings of the session.
func (o *order) settings() Settings {
	if o.Resume {
		return o.Options.Settings.over(o.Entry.Settings)
	}
	return o.Options.Settings
}

// hold starts the session of an order.
func (m *Manager) hold(ctx context.Context, what *order, options session.Options) (*held, error) {
	if dir := what.settings().Workdir; !filepath.IsAbs(dir) {
		return nil, agent.Usagef("workdir %q is not absolute", dir)
	}
	opts := what.Options
	if !what.Resume {
		return m.start(ctx, opts, options, what.Entry.Owner)
	}
	return m.resume(ctx, SessionHandle{SessionID: what.Entry.SessionID}, ResumeOptions{opts.Settings, opts.Env, opts.UnsavedMCPServers, opts.InitialPrompt, opts.InitialAttachments}, options)
}

// A reporter writes reports to the client that has started this process. Its methods
// may be called concurrently.
type reporter struct {
	mu    sync.Mutex
	file  *os.File // nil when the start is over
	runID string   // that was reported
}

func newReporter() *reporter {
	syscall.CloseOnExec(process.ReportFile)
	return &reporter{file: os.NewFile(process.ReportFile, "report")}
}

// report writes r. Ready and Failure end the start, so they are the last.
func (r *reporter) report(what Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return
	}
	r.runID = cmp.Or(what.RunID, r.runID)
	line, err := json.Marshal(what)
	if err == nil {
		_, _ = r.file.Write(append(line, '\n')) // the client may have gone
	}
	if what.Ready || what.Failure != nil {
		r.file.Close()
		r.file = nil
	}
}

// fail reports why the session did not start.
func (r *reporter) fail(err error) { r.report(Report{Failure: failureOf(err)}) }

// Record reports the record of an agent that did not start, when it ends.
func (r *reporter) Record(context.Context, agent.Recordable) (agent.Recording, error) {
	return agent.Recording{End: func(_ context.Context, result agent.Result, _ error) error {
		r.mu.Lock()
		known := r.runID == result.RunID
		r.mu.Unlock()
		if !known {
			r.report(Report{RunID: result.RunID})
		}
		return nil
	}}, nil
}
