package runs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
)

// protocolAgent is the interface of the specification.
type protocolAgent interface {
	Execute(ctx context.Context, runCtx *runs.RunContext) error
	Type() string
}

func runContext(t *testing.T, b *bench, script ...string) *runs.RunContext {
	t.Helper()
	dir := t.TempDir()
	return &runs.RunContext{
		RunID: "20260205-150405123-12345", ProjectID: "my-project", TaskID: "task-20260101-000000-mine", Prompt: "do it",
		WorkingDir: b.dir, StdoutPath: filepath.Join(dir, "agent-stdout.txt"), StderrPath: filepath.Join(dir, "agent-stderr.txt"),
		Environment: map[string]string{"FAKE_AGENT": strings.Join(script, "\n"), "JRUN_ID": "20260205-150405123-12345"},
	}
}

func TestExecute(t *testing.T) {
	t.Parallel()
	b := newBench(t, &runs.Records{})
	b.Recorder = nil
	x := runs.Agent("fake")
	x.Runner = &b.Runner
	var a protocolAgent = x
	if a.Type() != "fake" {
		t.Errorf("type %q", a.Type())
	}
	c := runContext(t, b, "stderr careful", "prompt", "say text:$JRUN_ID", "say ok:")
	if err := a.Execute(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if out, errs := read(t, c.StdoutPath), read(t, c.StderrPath); out != "text:\"do it\"\ntext:20260205-150405123-12345\nok:\n" || errs != "careful\n" {
		t.Errorf("stdout %q, stderr %q", out, errs)
	}
	c = runContext(t, b, "exit 3")
	exit, ok := errors.AsType[*agent.ExitError](a.Execute(t.Context(), c))
	if !ok || exit.Code != 3 {
		t.Errorf("exit %+v", exit)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Execute(ctx, runContext(t, b, "stay")); !errors.Is(err, agent.ErrCanceled) {
		t.Errorf("canceled: %v", err)
	}
}

// The examples of the specification.
func TestExecuteTakesTheIDsOfTheSpecification(t *testing.T) {
	t.Parallel()
	b := newBench(t, &runs.Records{})
	b.Recorder = nil
	x := &runs.Executor{Runner: &b.Runner, Request: agent.Request{Runtime: "other"}}
	c := runContext(t, b, "say ok:")
	c.RunID, c.TaskID = "test-run", "task-001"
	if err := x.Execute(t.Context(), c); err != nil {
		t.Error(err)
	}
}

// A runner of the protocol owns the terminal: a warning is in the file of the agent's
// standard error.
func TestExecuteWritesNothingToStandardError(t *testing.T) {
	b := newBench(t, &runs.Records{})
	b.Recorder, b.Warn = nil, nil
	b.Disable = []string{"nested"}
	b.Environ = append(b.Environ, "BUS_AGENT=nested")
	real := os.Stderr
	t.Cleanup(func() { os.Stderr = real })
	var err error
	if os.Stderr, err = os.Create(filepath.Join(t.TempDir(), "stderr")); err != nil {
		t.Fatal(err)
	}
	x := &runs.Executor{Runner: &b.Runner}
	c := runContext(t, b, "stderr careful", "say ok:")
	if err := x.Execute(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if said := read(t, os.Stderr.Name()); said != "" {
		t.Errorf("standard error is %q", said)
	}
	if said := read(t, c.StderrPath); !strings.HasPrefix(said, "bus-agent: ") || !strings.Contains(said, " is disabled") || !strings.HasSuffix(said, "careful\n") {
		t.Errorf("the file is %q", said)
	}
}

func TestExecuteRefusesANilContext(t *testing.T) {
	t.Parallel()
	if err := runs.Agent("fake").Execute(t.Context(), nil); !errors.Is(err, agent.ErrUsage) {
		t.Error(err)
	}
}

func TestExecuteRefusesIncompleteContext(t *testing.T) {
	t.Parallel()
	b := newBench(t, &runs.Records{})
	x := runs.Agent("fake")
	x.Runner = &b.Runner
	for name, spoil := range map[string]func(*runs.RunContext){
		"run id":            func(c *runs.RunContext) { c.RunID = "" },
		"bad run id":        func(c *runs.RunContext) { c.RunID = "../1" },
		"project":           func(c *runs.RunContext) { c.ProjectID = "My Project" },
		"task":              func(c *runs.RunContext) { c.TaskID = "../task-001" },
		"prompt":            func(c *runs.RunContext) { c.Prompt = " \n" },
		"working directory": func(c *runs.RunContext) { c.WorkingDir = "" },
		"relative":          func(c *runs.RunContext) { c.WorkingDir = "here" },
		"stdout":            func(c *runs.RunContext) { c.StdoutPath = "" },
		"stderr":            func(c *runs.RunContext) { c.StderrPath = "" },
		"relative stderr":   func(c *runs.RunContext) { c.StderrPath = "stderr" },
		"one file":          func(c *runs.RunContext) { c.StderrPath = c.StdoutPath },
		"variable":          func(c *runs.RunContext) { c.Environment["A=B"] = "x" },
	} {
		c := runContext(t, b, "say ok:")
		spoil(c)
		if err := x.Execute(t.Context(), c); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(filepath.Join(filepath.Dir(c.StdoutPath), "agent-stdout.txt")); err == nil && filepath.IsAbs(c.StdoutPath) {
			t.Errorf("%s: a file was written", name)
		}
	}
}

func ExampleAgent() {
	x := runs.Agent("codex")
	x.Runner = &runner.Runner{}
	err := x.Execute(context.Background(), &runs.RunContext{RunID: "20260205-150405123-12345", Prompt: "Say hello"})
	fmt.Println(x.Type(), err)
	// Output: codex working directory is empty; nothing was started
}
