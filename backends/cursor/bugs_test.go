package cursor

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// The bugs that its users report of the Cursor CLI, played by a stub.
func TestReportedBugs(t *testing.T) {
	t.Parallel()
	const (
		session = `{"type":"system","subtype":"init","apiKeySource":"login","session_id":"c6b62c6f","model":"m"}` + "\n"
		said    = `{"type":"assistant","message":{"content":[{"type":"text","text":"done"}]},"session_id":"c6b62c6f"}` + "\n"
		success = `{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"c6b62c6f"}` + "\n"
	)
	for name, c := range map[string]struct {
		steps   func(lock string) []backendtest.Step
		kind    error
		text    string
		workers bool
	}{
		"it never exits after its result": {
			steps: func(string) []backendtest.Step {
				return []backendtest.Step{backendtest.Print(session), backendtest.Print(said), backendtest.Print(success), backendtest.Hang()}
			},
		},
		"it refuses the workspace and exits 0": {
			steps: func(string) []backendtest.Step {
				return []backendtest.Step{backendtest.Print("Workspace Trust Required. Pass --trust, --yolo, or -f to proceed.")}
			},
			kind: agent.ErrAgent, text: "Workspace Trust Required",
		},
		"it does nothing and exits 0": {
			steps: func(string) []backendtest.Step { return []backendtest.Step{backendtest.Print(session)} },
			kind:  agent.ErrAgent, text: "without a result",
		},
		"it leaves workers behind": {
			steps: func(lock string) []backendtest.Step {
				return []backendtest.Step{backendtest.Print(session), backendtest.ForkSession(lock, backendtest.Hang()), backendtest.Print(said), backendtest.Print(success)}
			},
			workers: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin, work := t.TempDir(), t.TempDir()
			lock := filepath.Join(t.TempDir(), "lock")
			if _, err := backendtest.Install(bin, "cursor-agent", c.steps(lock)...); err != nil {
				t.Fatal(err)
			}
			var reg registry.Registry
			if err := reg.Register(Runtime()); err != nil {
				t.Fatal(err)
			}
			r := runner.Runner{Registry: &reg, Environ: []string{"PATH=" + bin, "HOME=" + t.TempDir(), "GORACE=atexit_sleep_ms=0"}, Warn: func(string) {}}
			result, err := r.Run(t.Context(), agent.Request{Prompt: "do it", Workdir: work}, agent.Output{})
			if c.kind != nil {
				if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) || result.ExitCode != 0 {
					t.Errorf("exit code %d, %v, want kind %v that says %q", result.ExitCode, err, c.kind, c.text)
				}
			} else if err != nil || result.Text != "done" {
				t.Errorf("%q, %v, want success", result.Text, err)
			}
			if c.workers {
				if alive, err := backendtest.Locked(lock); err != nil || alive {
					t.Errorf("a worker is alive: %t, %v", alive, err)
				}
			}
		})
	}
}
