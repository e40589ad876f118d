package backend

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"

	"github.com/busdk/bus-integration-task/worker/backend/containers"
)

// recordLimit bounds the end of a record.
const recordLimit = 10 * time.Second

// beginRecord begins the record of the attempt. An error means that a record is required
// and cannot be made.
func (r *containerAttempt) beginRecord(ctx context.Context) error {
	recorder := r.backend.Recorder
	if recorder == nil {
		return nil
	}
	c := r.given.Commands
	prompt := r.given.Prompt
	if strings.TrimSpace(prompt) == "" {
		prompt = strings.Join(c.Main, " ")
	}
	var err error
	r.record, err = recorder.Record(ctx, agent.Recordable{
		Start: agent.Start{Runtime: NameContainer, Workdir: r.given.Workdir, Path: c.Main[0], Command: agent.Command{Args: c.Main[1:]}},
		Root:  r.given.Workdir,
		Request: agent.Request{
			Runtime: NameContainer, Prompt: prompt, Workdir: r.given.Workdir, Access: r.given.Sandbox.Access(), Labels: r.given.Labels,
		},
		Environ: r.environ,
		Warn:    func(text string) { r.report.progress("warning: " + text) },
	})
	if err != nil {
		return &agent.Error{Kind: agent.ErrAgent, Runtime: NameContainer, Err: err}
	}
	r.outcome.RunID = r.record.RunID
	if r.record.Command != nil {
		r.record.Command(agent.Command{Args: c.Main[1:]})
	}
	return nil
}

// recordOutput records the output of a command.
func (r *containerAttempt) recordOutput(response *containers.RunResponse) error {
	for _, output := range []struct {
		to   io.Writer
		text string
	}{{r.record.Stdout, response.Stdout}, {r.record.Stderr, response.Stderr}} {
		if output.to == nil {
			continue
		}
		if _, err := io.WriteString(output.to, output.text); err != nil {
			return &agent.Error{Kind: agent.ErrAgent, Runtime: NameContainer, Err: err}
		}
	}
	return nil
}

// endRecord ends the record of an attempt that ended with err, and returns err, or else
// why a required record failed.
func (r *containerAttempt) endRecord(err error) error {
	if r.record.End == nil {
		return err
	}
	result := agent.Result{Runtime: NameContainer, Text: r.outcome.Text, Duration: r.outcome.Duration, RunID: r.record.RunID}
	if err != nil {
		result.ExitCode = -1
		if n := len(r.outcome.Commands); n > 0 {
			result.ExitCode = *r.outcome.Commands[n-1].ExitCode
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), recordLimit)
	defer cancel()
	if failure := r.record.End(ctx, result, err); failure != nil && err == nil {
		return &agent.Error{Kind: agent.ErrAgent, Runtime: NameContainer, Err: failure}
	}
	return err
}
