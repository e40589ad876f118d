//go:build acceptance

package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/modeltest"
)

// Commands that do not end, one in the foreground and one in a separate process session.
// Claude Code refuses commands that only sleep, hence the second form.
const (
	sleepers  = "touch running; setsid sleep 1000 & sleep 1000"
	sleepersP = "touch running; setsid python3 -c 'import time; time.sleep(1000)' & python3 -c 'import time; time.sleep(1000)'"
)

func TestCodexLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	arguments, err := json.Marshal(map[string]any{"cmd": sleepers, "yield_time_ms": 60000})
	if err != nil {
		t.Fatal(err)
	}
	for _, access := range []string{"write", "full"} { // with and without its sandbox
		t.Run(access, func(t *testing.T) {
			t.Parallel()
			testNothingLeftBehind(t, newCodex, access, modeltest.ToolCall{Name: "exec_command", Arguments: string(arguments)})
		})
	}
}

func TestClaudeLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	testNothingLeftBehind(t, newClaude, "full", bash(sleepersP))
}

func TestGeminiLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	testNothingLeftBehind(t, newGemini, "full", shell(sleepers))
}

// testNothingLeftBehind checks that a run leaves no processes and files behind, whatever
// ends it while the command of call is running. After SIGKILL, doctor --sweep cleans up.
func testNothingLeftBehind(t *testing.T, setup setupFunc, access string, call modeltest.ToolCall) {
	for name, end := range map[string]struct {
		signal syscall.Signal // 0 is the timeout of the run
		kind   string
	}{
		"timeout": {kind: "timeout"},
		"SIGINT":  {signal: syscall.SIGINT, kind: "canceled"},
		"SIGKILL": {signal: syscall.SIGKILL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if end.signal == syscall.SIGKILL && runtime.GOOS != "linux" {
				t.Skip("on other systems the agent survives bus-agent")
			}
			w := setup(t, modeltest.Replies(modeltest.Reply{call}), map[string]string{".gitignore": "running\n"})
			ctx, cancel := context.WithTimeout(t.Context(), runLimit)
			defer cancel()
			before := w.snapshot()
			args := []string{"run", "--agent", w.agent, "--model", w.modelID, "--access", access, "--format", "json", "--prompt", "-"}
			if end.signal == 0 {
				args = append(args, "--timeout", "20s")
			}
			cmd, stdout, stderr := w.start(ctx, "hello", append(args, w.codexArgs()...)...)
			w.awaitFile("running")
			if end.signal != 0 {
				if err := cmd.Process.Signal(end.signal); err != nil {
					t.Fatal(err)
				}
			}
			err := cmd.Wait()
			if end.signal == syscall.SIGKILL {
				w.sweep(ctx, cmd)
			} else {
				var r report
				if jsonErr := json.Unmarshal(stdout.Bytes(), &r); jsonErr != nil || r.Kind != end.kind || err == nil {
					t.Errorf("ended with %v, %v, kind %q\n%s\n%s", err, jsonErr, r.Kind, stdout, stderr)
				}
			}
			if err := os.Remove(filepath.Join(w.repo, "running")); err != nil {
				t.Error(err)
			}
			w.checkNothingLeft(before)
		})
	}
}

// awaitFile waits until a file exists in the repository.
func (w *fixture) awaitFile(name string) {
	w.t.Helper()
	testwait.Until(w.t, name, func() (error, bool) {
		_, err := os.Stat(filepath.Join(w.repo, name))
		return err, err == nil
	})
}

// sweep runs doctor --sweep for a killed bus-agent and checks its result.
func (w *fixture) sweep(ctx context.Context, killed *exec.Cmd) {
	w.t.Helper()
	var output string
	for _, args := range [][]string{{"doctor", "--sweep"}, {"doctor"}} {
		// Other tests run at the same time.
		args = append(args, "--owner", strconv.Itoa(killed.Process.Pid))
		cmd, stdout, stderr := w.start(ctx, "", args...)
		if err := cmd.Wait(); err != nil {
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
				w.t.Fatal(err)
			}
			w.t.Errorf("doctor: %v\n%s%s", err, stdout, stderr)
		}
		output = stdout.String()
		w.t.Logf("%s:\n%s", strings.Join(args, " "), output)
	}
	if output != "nothing to sweep\n" {
		w.t.Errorf("after a sweep: %s", output)
	}
}
