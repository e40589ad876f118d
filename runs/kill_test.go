package runs_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
)

// fakeRunner records runs below a root, one after the other, until it is killed.
func fakeRunner(root string) int {
	for mode, required := range map[string]bool{"full:": false, "required:": true} {
		if root, ok := strings.CutPrefix(root, mode); ok {
			return runFull(root, required)
		}
	}
	r := runner.Runner{Registry: new(registry.Registry), Recorder: &runs.Records{Root: root, Required: true}}
	if err := r.Registry.Register(fakeRuntime("fake")); err != nil {
		fmt.Println(err)
		return 1
	}
	for {
		result, err := r.Run(context.Background(), agent.Request{
			Runtime: "fake", Prompt: "do it", Workdir: root,
			Env:    []string{"FAKE_AGENT=say text:x\nsay ok:", "FAKE_RUNNER="},
			Labels: agent.Labels{Project: "p", Task: "task-20260101-000000-mine"},
		}, agent.Output{})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(result.RunID)
	}
}

// TestKilledRunnerLeavesReadableRecords kills a process at different moments while
// it records.
func TestKilledRunnerLeavesReadableRecords(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	if err := os.Symlink(self, filepath.Join(path, "fake")); err != nil {
		t.Fatal(err)
	}
	for moment := range 6 {
		root := t.TempDir()
		c := exec.Command(self)
		c.Env = []string{"FAKE_RUNNER=" + root, "PATH=" + path, "HOME=" + root, "GORACE=atexit_sleep_ms=0"}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewScanner(out)
		said.Scan() // one run is whole
		whole := said.Text()
		killedWithin(t, c, root, moment)
		dirs, err := os.ReadDir(filepath.Join(root, "p", "task-20260101-000000-mine", "runs"))
		if err != nil || whole == "" {
			t.Fatalf("%q, %v", whole, err)
		}
		for _, d := range dirs {
			if strings.HasPrefix(d.Name(), ".") {
				continue // it never was one
			}
			dir := filepath.Join(root, "p", "task-20260101-000000-mine", "runs", d.Name())
			info, err := runs.ReadInfo(filepath.Join(dir, "run-info.yaml"))
			if err != nil {
				t.Errorf("killed at moment %d: %v", moment, err)
				continue
			}
			if d.Name() == whole && info.Status != runs.StatusCompleted {
				t.Errorf("the run that was whole is %s", info.Status)
			}
			if read(t, dir, "prompt.md") != "do it" {
				t.Errorf("killed at moment %d: the prompt is missing", moment)
			}
		}
		if _, err := runs.ReadMessages(filepath.Join(root, "p", "task-20260101-000000-mine", "TASK-MESSAGE-BUS.md")); err != nil {
			t.Error(err)
		}
	}
}

// killedWithin kills c when the files of its next run are as far as moment says.
func killedWithin(t *testing.T, c *exec.Cmd, root string, moment int) {
	t.Helper()
	names := []string{".new-*", "*-2", "*-2/agent-stdout.txt", "*-2/events.ndjson", "*-2/output.md", "*-3"}
	for {
		found, err := filepath.Glob(filepath.Join(root, "p", "*", "runs", names[moment]))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) > 0 || moment == 0 && anyRun(root, "*-4") {
			break
		}
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
}

func anyRun(root, name string) bool {
	found, _ := filepath.Glob(filepath.Join(root, "p", "*", "runs", name))
	return len(found) > 0
}
