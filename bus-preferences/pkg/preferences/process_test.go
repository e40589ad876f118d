package preferences

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// childJob is the variable that makes the test binary run a job on the file named by
// BUS_PREFERENCES_PATH.
const childJob = "PREFERENCES_TEST_JOB"

func TestMain(m *testing.M) {
	switch job := os.Getenv(childJob); {
	case job == "":
		os.Exit(m.Run())
	case job == "count":
		count()
	case job == "crowd":
		crowd()
	case jobs[job] != nil:
		jobs[job]()
	default:
		writeKeys(job)
	}
}

// jobs are the jobs of the platform.
var jobs = map[string]func(){}

const keysPerWriter = 15

// writeKeys sets keys with the given prefix.
func writeKeys(prefix string) {
	for i := range keysPerWriter {
		if err := SetString(context.Background(), fmt.Sprintf("%s.k%d", prefix, i), prefix); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func child(t *testing.T, s store, job string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	check(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childJob+"="+job, "BUS_PREFERENCES_PATH="+s.path, "GORACE=atexit_sleep_ms=0")
	return cmd
}

func TestConcurrentWritesAreNotLost(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), newStore(t)
	const processes, goroutines = 4, 4
	var wait sync.WaitGroup
	for p := range processes {
		wait.Go(func() {
			if out, err := child(t, s, fmt.Sprintf("process%d", p)).CombinedOutput(); err != nil {
				t.Errorf("process %d: %v: %s", p, err, out)
			}
		})
	}
	for g := range goroutines {
		wait.Go(func() {
			for i := range keysPerWriter {
				if err := s.setString(ctx, fmt.Sprintf("goroutine%d.k%d", g, i), "x"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wait.Wait(); close(done) }()
	for n := 0; ; {
		items, err := s.list(ctx, "")
		if err != nil {
			t.Fatalf("reading during writes: %v", err)
		}
		if len(items) < n {
			t.Fatalf("%d preferences, fewer than %d before", len(items), n)
		}
		n = len(items)
		select {
		case <-done:
			if items, _ := s.list(ctx, ""); len(items) != (processes+goroutines)*keysPerWriter {
				t.Errorf("%d preferences, want %d", len(items), (processes+goroutines)*keysPerWriter)
			}
			return
		default:
		}
	}
}

func TestWaitForLockEndsWithContext(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	writeFile(t, s.path, `{"values":{"a":"x"}}`)
	unlock, err := lock(t.Context(), s.path)
	check(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.setString(ctx, "a", "y"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("setString = %v, want context.DeadlineExceeded", err)
	}
	if got, _, err := s.getString(t.Context(), "a"); got != "x" || err != nil {
		t.Errorf("getString during a write = %q, %v", got, err)
	}

	unlock()
	check(t, s.setString(t.Context(), "a", "y"))
	if got, _, err := s.getString(t.Context(), "a"); got != "y" || err != nil {
		t.Errorf("getString = %q, %v", got, err)
	}
}
