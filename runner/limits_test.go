package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

func TestRunKeepsNothingWhenAskedTo(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	req := b.request("say text:hi", "stderr the reason", "exit 1")
	req.CaptureLimit = -1
	result, err := b.Run(t.Context(), req, agent.Output{})
	var exit *agent.ExitError
	if !errors.As(err, &exit) || exit.Stderr != "the reason" {
		t.Errorf("Run = %v, want the tail of standard error in it", err)
	}
	for name, c := range map[string]agent.Captured{"stdout": result.Stdout, "stderr": result.Stderr} {
		if len(c.Bytes()) != 0 || c.Size == 0 || !c.Truncated {
			t.Errorf("%s: kept %q of %d bytes", name, c.Bytes(), c.Size)
		}
	}
}

func TestRunMasksSecretsWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	b.Environ = append(b.Environ, "LONG_TOKEN=sk-very-secret-and-more")
	edge := strings.Repeat("x", 4090) + " sk-very-secret-and-more"
	_, err := b.Run(t.Context(), b.request("stderr a sk-very-secret-and-more b", "say failed: "+edge, "exit 1"), agent.Output{})
	var exit *agent.ExitError
	if !errors.As(err, &exit) || exit.Stderr != "a *** b" {
		t.Errorf("stderr = %q, want it masked", exit.Stderr)
	}
	if strings.Contains(exit.Reason, "sk-") {
		t.Errorf("the reason ends with %q", exit.Reason[4080:])
	}
}

// A secret that begins before the part of standard error that is kept is masked too.
func TestRunMasksSecretsThatAreCut(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	secret := "sk"
	for n := range 300 {
		secret += fmt.Sprintf("-%04d", n)
	}
	b.Environ = append(b.Environ, "LONG_TOKEN="+secret)
	script := slices.Repeat([]string{"stderr Authorization: Bearer " + secret}, 11)
	_, err := b.Run(t.Context(), b.request(append(script, "exit 1")...), agent.Output{})
	var exit *agent.ExitError
	if !errors.As(err, &exit) || !strings.Contains(exit.Stderr, "***") || strings.Contains(exit.Stderr, "-0299") {
		t.Errorf("%v, standard error %q", err, exit.Stderr)
	}
}

// broken preferences cannot be read at all.
type broken string

func (b broken) Snapshot(context.Context) (runner.Preferences, error) {
	return nil, errors.New(string(b))
}

func (b broken) Get(context.Context, string) (json.RawMessage, bool, error) {
	return nil, false, errors.New(string(b))
}

func TestRunWarnsOnceOfPreferences(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	b.Preferences = broken("no disk")
	if result, err := b.Run(t.Context(), b.request("say ok:"), agent.Output{}); err != nil || len(result.Warnings) != 1 {
		t.Errorf("warnings = %q, %v, want one", result.Warnings, err)
	}
	plan, err := b.DryRun(t.Context(), b.request("say ok:"))
	if err != nil || len(plan.Warnings) != 1 || len(plan.Selection.Warnings) != 1 {
		t.Errorf("plan: %q, %q, %v, want one", plan.Warnings, plan.Selection.Warnings, err)
	}
}

func TestFailedRunHasAResult(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	b.Disable = []string{"alpha"}
	req := b.request("say ok:")
	req.Runtime = "alpha"
	result, err := b.Run(t.Context(), req, agent.Output{})
	if !errors.Is(err, agent.ErrNoneAvailable) || result.Runtime != "alpha" || len(result.Warnings) != 1 {
		t.Errorf("Run = %+v, %v, want the runtime and the warning", result, err)
	}
}

// A directory with a path of the maximum length is not writable, even for root.
func TestRunWithoutAUsableTempDir(t *testing.T) {
	t.Parallel()
	long := t.TempDir()
	for n := 200; n > 0; {
		next := filepath.Join(long, strings.Repeat("d", n))
		if os.Mkdir(next, 0o755) != nil {
			n /= 2
			continue
		}
		long = next
	}
	for name, dir := range map[string]string{"missing": "/no/such/dir", "relative": "tmp", "too long": long} {
		b := newBench(t, "alpha")
		b.Environ = append(b.Environ, "TMPDIR="+dir)
		result, err := b.Run(t.Context(), b.request("env TMPDIR", "say ok:"), agent.Output{})
		if err != nil || !strings.Contains(result.Text, "bus-agent-") {
			t.Errorf("%s: Run = %q, %v, want another folder", name, result.Text, err)
		}
	}
}

func TestAgentGetsItsDirectory(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	b.Environ = append(b.Environ, "PWD=/somewhere/else")
	if result, err := b.Run(t.Context(), b.request("env PWD", "say ok:"), agent.Output{}); err != nil || result.Text != "PWD="+b.dir+" true" {
		t.Errorf("Run = %q, %v, want %s", result.Text, err, b.dir)
	}
}

func TestErrorsAreSafeToPrint(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	b.dir = filepath.Join(b.dir, "a\x1b[2J\nb")
	if err := os.MkdirAll(filepath.Join(b.dir, "AGENTS.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.Preferences = broken("a\x1b[2J\nb")
	result, err := b.Run(t.Context(), b.request("say session:s\x1b[2J model\x1b]0;x\x07-1", "say ok:"), agent.Output{})
	if err != nil || result.SessionID != "s" || result.Model != "model-1" {
		t.Errorf("session %q, model %q, %v", result.SessionID, result.Model, err)
	}
	for _, line := range append(b.warnings, result.Warnings...) {
		if strings.ContainsAny(line, "\x1b\n") {
			t.Errorf("warning %q", line)
		}
	}
	if len(result.Warnings) == 0 {
		t.Error("no warnings")
	}
}

func TestInvalidList(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`null`, `"alpha"`, `[1]`, `{}`} {
		b := newBench(t, "alpha")
		b.Preferences = prefs{runner.KeyEnable: value}
		if _, err := b.Resolve(t.Context(), ""); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), runner.KeyEnable) {
			t.Errorf("%s: %v, want a usage error", value, err)
		}
	}
}
