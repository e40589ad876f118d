package runs_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
)

func init() { recordingPrograms["disk"] = runOnFullDisk }

// runOnFullDisk records a run on a disk that it fills, and one on a disk that is full,
// and prints what is left of each.
func runOnFullDisk(root string) int {
	if err := syscall.Mount("none", root, "tmpfs", 0, "size=256k"); err != nil {
		fmt.Println("cannot mount:", err)
		return 0
	}
	r := runner.Runner{Registry: new(registry.Registry), Recorder: &runs.Records{Root: filepath.Join(root, "runs")}}
	if err := r.Registry.Register(fakeRuntime("fake")); err != nil {
		fmt.Println(err)
		return 1
	}
	for _, task := range []string{"full-during", "full-before"} {
		_, err := r.Run(context.Background(), agent.Request{
			Runtime: "fake", Prompt: "do it", Workdir: filepath.Dir(root),
			Env:    []string{"FAKE_AGENT=many 60000\nsay quota:used up", "FAKE_RUNNER="},
			Labels: agent.Labels{Project: task, Task: task},
		}, agent.Output{})
		fmt.Println(task, err)
		fill, err := os.Create(filepath.Join(root, "fill"))
		for err == nil {
			_, err = fill.Write(make([]byte, 4096))
		}
	}
	_ = filepath.WalkDir(filepath.Join(root, "runs"), func(path string, d fs.DirEntry, err error) error {
		fmt.Println("left", path)
		if d.Name() == "run-info.yaml" {
			text, _ := os.ReadFile(path)
			fmt.Printf("%s\n", text)
		}
		return err
	})
	return 0
}

// The end of a run fits on a full disk, and a run that does not fit at all leaves
// nothing.
func TestEndOfARunFitsOnAFullDisk(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path, root := t.TempDir(), filepath.Join(t.TempDir(), "disk")
	if err := os.Symlink(self, filepath.Join(path, "fake")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = []string{"FAKE_RUNNER=disk:" + root, "PATH=" + path, "HOME=" + root, "GORACE=atexit_sleep_ms=0"}
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	text, err := c.CombinedOutput()
	out := string(text)
	if err != nil && len(text) == 0 || strings.HasPrefix(out, "cannot mount") {
		testneed.LackingAsRoot(t, "a disk cannot be mounted here: %v %s", err, out)
	}
	for _, want := range []string{
		"full-during fake: exit code 0: used up", "\nstatus: failed\n", "\nerror_kind: quota\n", "\nrecord_problem: ", "no space left",
		"bus-agent: the run is not recorded in ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for line := range strings.Lines(out) {
		for _, unwanted := range []string{"full-before", ".part", ".new-", ".lock"} {
			if strings.HasPrefix(line, "left ") && strings.Contains(line, unwanted) {
				t.Error(line)
			}
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}
