package runs

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/runner"
)

// A RunContext is what a runner of the Agent Protocol passes to an agent.
type RunContext struct {
	RunID       string            // required; see CheckRun
	ProjectID   string            // checked when not empty
	TaskID      string            // checked when not empty
	Prompt      string            // required
	WorkingDir  string            // required, absolute
	StdoutPath  string            // required, absolute: the agent's standard output
	StderrPath  string            // required, absolute
	Environment map[string]string // added to that of the process
}

// Check returns the first mistake in a RunContext, an agent.ErrUsage error. A nil
// RunContext is a mistake.
func (c *RunContext) Check() error {
	if c == nil {
		return agent.Usagef("the run context is nil; nothing was started")
	}
	for _, field := range []struct{ name, text string }{
		{"run id", c.RunID}, {"prompt", strings.TrimSpace(c.Prompt)}, {"working directory", c.WorkingDir},
		{"stdout path", c.StdoutPath}, {"stderr path", c.StderrPath},
	} {
		if field.text == "" {
			return agent.Usagef("%s is empty; nothing was started", field.name)
		}
	}
	for _, id := range []struct {
		text  string
		check func(string) error
	}{{c.RunID, CheckRun}, {c.ProjectID, CheckProject}, {c.TaskID, CheckTask}} {
		if id.text == "" {
			continue
		}
		if err := id.check(id.text); err != nil {
			return err
		}
	}
	for _, path := range []struct{ name, text string }{
		{"working directory", c.WorkingDir}, {"stdout path", c.StdoutPath}, {"stderr path", c.StderrPath},
	} {
		if !filepath.IsAbs(path.text) {
			return agent.Usagef("%s %q is not absolute; nothing was started", path.name, path.text)
		}
	}
	if filepath.Clean(c.StdoutPath) == filepath.Clean(c.StderrPath) {
		return agent.Usagef("stdout and stderr path are both %q; nothing was started", c.StdoutPath)
	}
	for name := range c.Environment {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return agent.Usagef("%q is not a variable name; nothing was started", name)
		}
	}
	return nil
}

// An Executor implements the Agent interface of the Agent Protocol for any runtime: a
// runner of that protocol makes the folder and the record of a run, and an Executor
// runs the agent. Its methods may be called concurrently.
type Executor struct {
	// Runner runs the agent; nil is the zero Runner. If its Warn is nil, warnings are
	// written to the file of the agent's standard error: nothing is written to that of
	// the process.
	Runner *runner.Runner

	// Request has what a RunContext lacks, such as runtime, model, access and timeout.
	// Prompt, Template, Vars, Workdir and CaptureLimit must not be set.
	Request agent.Request
}

// Agent returns an Executor for a runtime token.
func Agent(runtime string) *Executor {
	return &Executor{Request: agent.Request{Runtime: runtime}}
}

// Type returns the runtime token.
func (x *Executor) Type() string { return x.Request.Runtime }

// Execute runs the agent to its end and writes its output to the files of c, which it
// empties, or creates for the user alone. The errors are those of [RunContext.Check]
// and runner.Runner.Run. The end of ctx ends the agent and all its processes.
func (x *Executor) Execute(ctx context.Context, c *RunContext) (err error) {
	if err := c.Check(); err != nil {
		return err
	}
	if err := x.Request.CheckUnused("an Executor", "Prompt", "Template", "Vars", "Workdir", "CaptureLimit"); err != nil {
		return err
	}
	files := make([]*os.File, 0, 2)
	defer func() {
		for _, f := range files {
			if closeErr := f.Close(); err == nil {
				err = closeErr
			}
		}
	}()
	for _, path := range []string{c.StdoutPath, c.StderrPath} {
		f, err := statefile.Truncate(path)
		if err != nil {
			return &agent.Error{Kind: agent.ErrAgent, Runtime: x.Request.Runtime, Err: fmt.Errorf("nothing was started: %w", err)}
		}
		files = append(files, f)
	}
	req := x.Request
	req.Prompt, req.Workdir, req.CaptureLimit = c.Prompt, c.WorkingDir, -1
	req.Env = slices.Clone(req.Env)
	for _, name := range slices.Sorted(maps.Keys(c.Environment)) {
		req.Env = append(req.Env, name+"="+c.Environment[name])
	}
	var r runner.Runner
	if x.Runner != nil {
		r = *x.Runner
	}
	if r.Warn == nil {
		r.Warn = func(line string) { fmt.Fprintf(files[1], "bus-agent: %s\n", line) }
	}
	_, err = r.Run(ctx, req, agent.Output{Stdout: files[0], Stderr: files[1]})
	return err
}
