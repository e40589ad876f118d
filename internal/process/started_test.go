package process

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestStartedAt(t *testing.T) {
	t.Parallel()
	child := exec.Command("/bin/cat")
	input, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	after := time.Now()
	const slack = 2 * time.Second // ticks, and clocks that are corrected
	at, err := StartedAt(child.Process.Pid)
	if err != nil || at.Before(before.Add(-slack)) || at.After(after.Add(slack)) {
		t.Errorf("it was started at %s, %v, want between %s and %s", at, err, before, after)
	}
	if first, err := StartedAt(1); err == nil && first.After(before) {
		t.Errorf("the first process was started at %s", first)
	}
	input.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := StartedAt(child.Process.Pid); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a process that has ended: %v", err)
	}
	for _, pid := range []int{0, -1} {
		if _, err := StartedAt(pid); err == nil || errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%d: %v", pid, err)
		}
	}
}
