package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/busdk/bus-agent/agent"
)

// errPanicked is the error in the record of a run that a panic of a callback, or the
// end of its goroutine, cut short.
var errPanicked = errors.New("a callback of the caller panicked, the agent was ended")

// record begins the record of the run and builds the command for the prompt that the
// recorder wants.
func (p *prepared) record(ctx context.Context, r *Runner) error {
	err := p.askRecorder(ctx, r)
	if err != nil {
		return err
	}
	if p.recording.Prompt != "" {
		// The recorder can make the prompt too long.
		p.inv.Prompt = p.recording.Prompt
		err = p.check()
	}
	if err == nil {
		err = p.build()
	}
	if err != nil {
		return p.recorded(p.after(ctx), &agent.Result{Runtime: p.req.Runtime, Model: p.req.Model, ExitCode: -1}, err)
	}
	if p.recording.Command != nil {
		p.recording.Command(p.command)
	}
	return nil
}

// prepareOrRecord is prepare, and records that the agent cannot be started.
func (r *Runner) prepareOrRecord(ctx context.Context, req agent.Request, out agent.Output, what purpose) (*prepared, error) {
	p, err := r.prepare(ctx, req, out, what)
	if r.Recorder == nil || !errors.Is(err, agent.ErrNotInstalled) && !errors.Is(err, agent.ErrAgent) {
		return p, err
	}
	defer p.finish()
	p.req.Runtime = p.selection.Token
	p.settle()
	if failure := p.askRecorder(ctx, r); failure != nil {
		p.warn(failure.Error())
		return p, err
	}
	return p, p.recorded(p.after(ctx), &agent.Result{Runtime: p.req.Runtime, Model: p.req.Model, ExitCode: -1, Warnings: p.warned()}, err)
}

// askRecorder begins the record.
func (p *prepared) askRecorder(ctx context.Context, r *Runner) error {
	if r.Recorder == nil {
		return nil
	}
	req := p.req
	req.Prompt, req.Schema = p.inv.Prompt, p.inv.Schema
	version := p.version
	if p.selection.Path == "" {
		version = nil
	}
	recording, err := r.Recorder.Record(ctx, agent.Recordable{
		Start: p.start(), Request: req, Root: p.inv.Root, Environ: p.environ(), Secrets: agent.MCPSecrets(p.inv.MCPServers), ForeignEnv: r.registry().ForeignEnv(p.selection.Runtime),
		Provider: p.provider(), Session: p.purpose.talks(), Version: version, Warn: p.warn,
	})
	if err != nil {
		if _, ok := errors.AsType[*agent.Error](err); !ok {
			err = fmt.Errorf("nothing was started, because the run cannot be recorded: %w", err)
		}
		return p.wrap(agent.ErrAgent, err)
	}
	guardRecording(&recording)
	p.recording, p.isRecorded = recording, true
	return nil
}

// recordOrClose is record, and cleans up if it fails or panics.
func (p *prepared) recordOrClose(ctx context.Context, r *Runner) error {
	recorded := false
	defer func() {
		if !recorded {
			p.close(ctx)
		}
	}()
	err := p.record(ctx, r)
	recorded = err == nil
	return err
}

// provider returns the provider of the model, "" for a variant, which can use another.
func (p *prepared) provider() string {
	if p.selection.Variant != "" {
		return ""
	}
	return p.selection.Runtime.Provider
}

// started reports the agent's process to the recorder.
func (p *prepared) started(pid int, identity string) {
	p.began.Store(true)
	if p.recording.Started != nil {
		p.recording.Started(agent.Process{PID: pid, Identity: identity})
	}
}

// recorded ends the recording, within ctx, and returns the error of the run.
func (p *prepared) recorded(ctx context.Context, result *agent.Result, err error) error {
	result.RunID = p.recording.RunID
	end := p.recording.End
	if end == nil {
		return err
	}
	p.recording.End = nil
	failure := end(ctx, *result, err)
	if err == nil && failure != nil {
		err = &agent.Error{Kind: agent.ErrAgent, Runtime: p.req.Runtime, Err: fmt.Errorf("the run is over, but %w", failure)}
	}
	return err
}
