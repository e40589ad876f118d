package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/busdk/bus-agent/agent"
)

// errAbandoned is how a run ended for its recorder when a panic or the end of its
// goroutine cut it short.
var errAbandoned = errors.New("a callback of the caller panicked, the agent was ended")

// record asks the recorder how the run is to be recorded, and builds the command
// for the prompt that it wants.
func (p *prepared) record(ctx context.Context, r *Runner) error {
	err := p.askRecorder(ctx, r)
	if err != nil {
		return err
	}
	if p.recording.Prompt != "" {
		// A prompt that the recorder made longer has to pass like any other.
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

// askRecorder notes what the recorder wants.
func (p *prepared) askRecorder(ctx context.Context, r *Runner) error {
	if r.Recorder == nil {
		return nil
	}
	req := p.req
	req.Prompt, req.Schema = p.inv.Prompt, p.inv.Schema
	recording, err := r.Recorder.Record(ctx, agent.Recordable{
		Start: p.start(), Request: req, Root: p.inv.Root, Environ: p.environ(), ForeignEnv: r.registry().ForeignEnv(p.selection.Runtime),
		Provider: p.provider(), Session: p.purpose.talks(), Version: p.version, Warn: p.warn,
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

// recordOrClose is record, after which nothing is left to close when it fails.
func (p *prepared) recordOrClose(ctx context.Context, r *Runner) error {
	goesOn := false
	defer func() {
		if !goesOn { // it may have panicked
			p.close(ctx)
		}
	}()
	err := p.record(ctx, r)
	goesOn = err == nil
	return err
}

// provider returns who answers for the model; a variant can ask somebody else.
func (p *prepared) provider() string {
	if p.selection.Variant != "" {
		return ""
	}
	return p.selection.Runtime.Provider
}

// started tells the recorder of the agent's process.
func (p *prepared) started(pid int, identity string) {
	p.began.Store(true)
	if p.recording.Started != nil {
		p.recording.Started(agent.Process{PID: pid, Identity: identity})
	}
}

// recorded ends the recording, within ctx, with what the run came to, and returns
// the error of the run.
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
