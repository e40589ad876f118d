package preferences

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The test binary is also the other process: with childJob set it does that job
// on the file named by BUS_PREFERENCES_PATH.
const childJob = "PREFERENCES_TEST_JOB"

func TestMain(m *testing.M) {
	switch job := os.Getenv(childJob); {
	case job == "":
		os.Exit(m.Run())
	case job == "flip":
		flip()
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

// jobs are those of one platform.
var jobs = map[string]func(){}

const keysPerWriter = 15

// writeKeys sets keys of its own, one after the other.
func writeKeys(prefix string) {
	for i := range keysPerWriter {
		if err := SetString(context.Background(), fmt.Sprintf("%s.k%d", prefix, i), prefix); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// flip sets one key to long values of one letter each for ever, and reports
// each write.
func flip() {
	for i := 0; ; i++ {
		if err := SetString(context.Background(), "letters", strings.Repeat(string(rune('a'+i%26)), 1<<16)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(i)
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

func TestNoWriteIsLostAmongProcessesAndGoroutines(t *testing.T) {
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
			t.Fatalf("a reader saw half a file: %v", err)
		}
		if len(items) < n {
			t.Fatalf("%d preferences, after there were %d", len(items), n)
		}
		n = len(items)
		select {
		case <-done:
			if items, _ := s.list(ctx, ""); len(items) != (processes+goroutines)*keysPerWriter {
				t.Errorf("%d preferences of %d are left", len(items), (processes+goroutines)*keysPerWriter)
			}
			return
		default:
		}
	}
}

func TestKilledWriterLeavesAWholeFileAndNoLock(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for round := range 8 {
		cmd := child(t, s, "flip")
		stdout, err := cmd.StdoutPipe()
		check(t, err)
		check(t, cmd.Start())
		lines := bufio.NewScanner(stdout)
		for range round + 2 {
			if !lines.Scan() {
				t.Fatal("the writer ended by itself")
			}
		}
		check(t, cmd.Process.Kill())
		_, _ = io.Copy(io.Discard, stdout)
		_ = cmd.Wait()

		value, ok, err := s.getString(t.Context(), "letters")
		if err != nil || !ok || len(value) != 1<<16 || strings.Trim(value, value[:1]) != "" {
			t.Fatalf("round %d: value of %d bytes, %v, %v", round, len(value), ok, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := s.setJSON(ctx, "round", json.RawMessage(fmt.Sprint(round))); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		cancel()
		if got := files(t, filepath.Dir(s.path)); got != "preferences.json preferences.json.lock" {
			t.Fatalf("round %d: files = %s", round, got)
		}
	}
}

func TestWaitForTheLockEndsWithTheContext(t *testing.T) {
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
		t.Errorf("getString while another writes = %q, %v", got, err)
	}

	unlock()
	check(t, s.setString(t.Context(), "a", "y"))
	if got, _, err := s.getString(t.Context(), "a"); got != "y" || err != nil {
		t.Errorf("getString = %q, %v", got, err)
	}
}
