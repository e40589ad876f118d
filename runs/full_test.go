package runs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
)

// fileLimit is the maximum file size of a process that runs out of space.
const fileLimit = 40 << 10

// runFull records a run of an agent that writes more than fits, and prints the
// outcome.
func runFull(root string, required bool) int {
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: fileLimit, Max: fileLimit}); err != nil {
		fmt.Println(err)
		return 1
	}
	r := runner.Runner{
		Registry: new(registry.Registry), Recorder: &runs.Records{Root: root, Required: required},
		Warn: func(line string) { fmt.Println("warning:", line) },
	}
	if err := r.Registry.Register(fakeRuntime("fake")); err != nil {
		fmt.Println(err)
		return 1
	}
	result, err := r.Run(context.Background(), agent.Request{
		Runtime: "fake", Prompt: "do it", Workdir: root,
		Env: []string{"FAKE_AGENT=many 20000\nsay text:the end\nsay ok:", "FAKE_RUNNER="},
	}, agent.Output{})
	fmt.Printf("answer: %.20s\nerror: %v\n", result.Text[max(0, len(result.Text)-7):], err)
	return 0
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	if err := os.Symlink(self, filepath.Join(path, "fake")); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[string][]string{
		"full:":     {"answer: the end", "error: <nil>", "warning: the record of run 2", "is incomplete: ", "file too large"},
		"required:": {"error: fake: ", "file too large"},
	} {
		root := filepath.Join(t.TempDir(), "runs")
		if err := os.Mkdir(root, 0o700); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(self)
		c.Env = []string{"FAKE_RUNNER=" + mode + root, "PATH=" + path, "HOME=" + root, "GORACE=atexit_sleep_ms=0"}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, text := range want {
			if !strings.Contains(string(out), text) {
				t.Errorf("%s %q is missing in\n%s", mode, text, out)
			}
		}
		found, _ := filepath.Glob(filepath.Join(root, "*", "*", "runs", "*", "run-info.yaml"))
		if len(found) != 1 {
			t.Fatalf("%s recorded %d times", mode, len(found))
		}
		info, err := runs.ReadInfo(found[0])
		if err != nil || info.RecordProblem == "" || (info.Status == runs.StatusCompleted) != (mode == "full:") {
			t.Errorf("%s %+v, %v", mode, info, err)
		}
	}
}

func TestUnwritableFolder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, required := range []bool{false, true} {
		b := newBench(t, &runs.Records{Root: filepath.Join(file, "runs"), Required: required})
		started := false
		req := b.request("say text:the answer", "say ok:")
		out := agent.Output{Started: func(agent.Start) { started = true }}
		result, err := b.Run(t.Context(), req, out)
		if required {
			if err == nil || errors.Is(err, agent.ErrUsage) || started || !strings.Contains(err.Error(), "not a directory") {
				t.Errorf("required: %v, started %t", err, started)
			}
			continue
		}
		if err != nil || result.Text != "the answer" || result.RunID != "" || len(b.warnings) != 1 || !strings.Contains(b.warnings[0], "the run is not recorded in "+file) {
			t.Errorf("%+v, %v, %q", result, err, b.warnings)
		}
	}
}

// Removing the record during the run does not fail the run.
func TestRecordRemovedDuringTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t, &runs.Records{})
	req := b.request("say text:the answer", "say ok:")
	out := agent.Output{Events: func(*agent.Event) error { return os.RemoveAll(b.root) }}
	result, err := b.Run(t.Context(), req, out)
	if err != nil || result.Text != "the answer" || len(b.warnings) != 1 || !strings.Contains(b.warnings[0], "is incomplete") {
		t.Errorf("%+v, %v, %q", result, err, b.warnings)
	}
}
