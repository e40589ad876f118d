package runs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
)

// killedTask is the task of the run that runKilled does not finish.
const killedTask = "task-20260101-000000-mine"

// recordingPrograms are the programs that the test binary can be, by the name before
// their argument in FAKE_RUNNER.
var recordingPrograms = map[string]func(arg string) int{
	"kill":     runKilled,
	"full":     func(root string) int { return runFull(root, false) },
	"required": func(root string) int { return runFull(root, true) },
}

// runKilled records two runs below a root, and is killed before a change that it makes
// for the second.
func runKilled(arg string) int {
	number, root, _ := strings.Cut(arg, ":")
	change, err := strconv.Atoi(number)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	r := runner.Runner{Registry: new(registry.Registry), Recorder: &runs.Records{Root: root, Required: true}}
	if err := r.Registry.Register(fakeRuntime("fake")); err != nil {
		fmt.Println(err)
		return 1
	}
	// The first run is of another task, so that the second one makes all folders.
	for _, task := range []string{"task-001", killedTask} {
		result, err := r.Run(context.Background(), agent.Request{
			Runtime: "fake", Prompt: "do it", Workdir: root,
			Env:    []string{"FAKE_AGENT=say text:x\nsay ok:", "FAKE_RUNNER="},
			Labels: agent.Labels{Project: "p", Task: task},
		}, agent.Output{})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println(result.RunID)
		var mu sync.Mutex
		statefile.BeforeChange = func() {
			mu.Lock()
			defer mu.Unlock()
			if change--; change == 0 {
				_ = unix.Kill(os.Getpid(), unix.SIGKILL)
				select {}
			}
		}
	}
	return 0
}

// TestKilledRunnerLeavesReadableRecords kills a recording process before each change of
// a folder. What it leaves can be judged by a reader that knows only the Agent Protocol:
// it takes each folder for a run, and its PID for that of the agent.
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
	seen := map[runs.Status]int{}
	for change := 1; ; change++ {
		root := t.TempDir()
		c := exec.Command(self)
		c.Env = []string{fmt.Sprintf("FAKE_RUNNER=kill:%d:%s", change, root), "PATH=" + path, "HOME=" + root, "GORACE=atexit_sleep_ms=0"}
		out, killed := c.Output()
		whole := strings.Fields(string(out))
		if len(whole) == 0 {
			t.Fatal(killed)
		}
		task := filepath.Join(root, "p", killedTask)
		checkAsOthers(t, task, change)
		store := &runs.Records{Root: root}
		list, problems, listErr := store.List(t.Context(), runs.Filter{})
		if listErr != nil || len(problems) > 0 {
			t.Errorf("killed before change %d: %v, %v", change, listErr, problems)
		}
		for _, run := range list {
			if slices.Contains(whole, run.RunID) {
				if run.Status != runs.StatusCompleted {
					t.Errorf("killed before change %d: the run that was whole is %s", change, run.Status)
				}
				continue
			}
			seen[run.Status]++
			if run.Status != runs.StatusCrashed && run.Status != runs.StatusCompleted {
				t.Errorf("killed before change %d: the run is %s", change, run.Status)
			}
		}
		messages, err := runs.ReadMessages(filepath.Join(task, "TASK-MESSAGE-BUS.md"))
		for _, m := range messages {
			if m.Type == runs.MessageStop && list[0].Status != runs.StatusCompleted {
				t.Errorf("killed before change %d: %s is posted, and the run is %s", change, m.Type, list[0].Status)
			}
		}
		if err != nil && (change > 20 || !errors.Is(err, fs.ErrNotExist)) {
			t.Errorf("killed before change %d: %d messages, %v", change, len(messages), err)
		}
		if text := "do it\n"; exists(t, task, "TASK.md") && read(t, task, "TASK.md") != text {
			t.Errorf("killed before change %d: TASK.md is %q", change, read(t, task, "TASK.md"))
		}
		old, _ := filepath.Glob(filepath.Join(task, ".new-*"))
		for _, dir := range old { // one without a record is kept for a while
			if err := os.Chtimes(dir, time.Time{}, time.Unix(0, 0)); err != nil {
				t.Error(err)
			}
		}
		if err := store.RemoveStale(t.Context(), runs.Filter{}, false); err != nil {
			t.Error(err)
		}
		if stale, _ := filepath.Glob(filepath.Join(task, ".*")); len(stale) > 0 {
			t.Errorf("killed before change %d: %q cannot be removed", change, stale)
		}
		if killed == nil {
			break
		}
	}
	if seen[runs.StatusCrashed] < 10 || seen[runs.StatusCompleted] < 2 {
		t.Errorf("the runs are %v", seen)
	}
}

func exists(t *testing.T, elements ...string) bool {
	t.Helper()
	_, err := os.Lstat(filepath.Join(elements...))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// checkAsOthers reads the runs of a task as another program does.
func checkAsOthers(t *testing.T, task string, change int) {
	t.Helper()
	dirs, err := os.ReadDir(filepath.Join(task, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, d := range dirs {
		dir := filepath.Join(task, "runs", d.Name())
		info, err := runs.ReadInfo(filepath.Join(dir, "run-info.yaml"))
		if err != nil || info.PID <= 0 {
			t.Errorf("killed before change %d: the run %s has PID %d, %v", change, d.Name(), info.PID, err)
			continue
		}
		testwait.Until(t, "the end of the agent", func() (runs.Info, bool) { // by itself
			return info, info.Status != runs.StatusRunning || unix.Kill(info.PID, 0) != nil
		})
		if read(t, dir, "prompt.md") != "do it" {
			t.Errorf("killed before change %d: the prompt is missing", change)
		}
	}
}
