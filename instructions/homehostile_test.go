package instructions_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/instructions"
)

// leftInHomes are files that the agent of a killed run can leave in its home.
var leftInHomes = map[string]func(dir string) error{
	"a FIFO": func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "a.jsonl"), 0o600) },
	"a sparse file": func(dir string) error {
		name := filepath.Join(dir, "a.jsonl")
		return errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, 8<<40))
	},
	"folders in folders": func(dir string) error {
		root, err := os.OpenRoot(dir)
		for range 40 { // a path of at most 4096 bytes, each of names of 90
			if err != nil {
				return err
			}
			name := strings.Repeat("d", 90)
			err = root.Mkdir(name, 0o700)
			next, openErr := root.OpenRoot(name)
			root.Close()
			root, err = next, errors.Join(err, openErr)
		}
		return root.Close()
	},
	"folders without rights": func(dir string) error {
		return errors.Join(os.MkdirAll(filepath.Join(dir, "x/y"), 0o700), os.Chmod(filepath.Join(dir, "x/y"), 0), os.Chmod(filepath.Join(dir, "x"), 0))
	},
	"a link to everything": func(dir string) error { return os.Symlink("/", filepath.Join(dir, "a.jsonl")) },
}

// Whatever a killed run has left, the next run starts, the sessions are kept, and a
// sweep removes the other files. A sweep that was stopped can be repeated.
func TestHostileHomesOfKilledRuns(t *testing.T) {
	t.Parallel()
	for name, leave := range leftInHomes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, temp := tempDir(t), tempDir(t)
			places := instructions.Locations{Workdir: dir, Owned: owned, TempDirs: []string{temp}}
			dead := startOwning(t, dir, temp)
			for _, at := range []string{dead.temp, dead.home, dead.home + "/state", dead.home + "/state/days/1"} {
				must(t, os.MkdirAll(at, 0o700), leave(at))
			}
			write(t, dead.home, map[string]string{"state/said.jsonl": "hello"})
			dead.kill()

			stopped, stop := context.WithCancelCause(t.Context())
			stop(errors.New("interrupt"))
			for _, f := range places.RemoveStale(stopped, 0) {
				if f.Err == nil || !strings.Contains(f.Err.Error(), "stopped: interrupt") {
					t.Errorf("of a sweep that was stopped: %+v", f)
				}
			}
			if !exists(dead.home) || !exists(dead.temp) {
				t.Error("a sweep that was stopped has removed it")
			}
			mine := newHome(t, open(t, dir, false))
			for mine.Path() != dead.home && exists(dead.home) { // it may need more than staleTime
				mine = newHome(t, open(t, dir, false))
			}
			if len(content(t, mine)) != 0 {
				t.Errorf("the new home holds %v", content(t, mine))
			}
			if text, err := os.ReadFile(filepath.Join(keptBy(mine), "said/said.jsonl")); err != nil || string(text) != "hello" {
				t.Errorf("the session is %q, %v", text, err)
			}
			for _, f := range places.RemoveStale(t.Context(), 0) {
				if f.Err != nil {
					t.Error(f.Err)
				}
			}
			if exists(dead.temp) {
				t.Error("the temporary files are left")
			}
		})
	}
}

// Files beyond the budget of a run remain, with a warning; the next run removes them.
func TestHostileHomeOverTheBudget(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	w := open(t, dir, false)
	h := newHome(t, w)
	must(t, h.WriteFile("s/said.jsonl", []byte("hello"), 0o600))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	w.Bound(over)
	if err := h.Keep("s", "s"); err == nil {
		t.Error("a session is kept without time")
	}
	if err := h.Remove(); err == nil || !strings.Contains(err.Error(), "is left behind: stopped") {
		t.Errorf("got %v", err)
	}
	if !exists(filepath.Join(h.Path(), claimName)) {
		t.Error("what is left does not say whose it is")
	}
}
