package worktree

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMain lets the test program be a process that is killed in a promotion.
func TestMain(m *testing.M) {
	if at := os.Getenv("WORKTREE_TEST_KILL_AT"); at != "" {
		promoteAndDie(at)
	}
	if dir := os.Getenv("WORKTREE_TEST_REMOVE"); dir != "" {
		removeWithFew(dir)
	}
	os.Exit(m.Run())
}

func promoteAndDie(at string) {
	step = func(name string) {
		if name == at {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	r, err := Open(context.Background(), os.Args[1], Config{Workspace: os.Args[1], State: os.Args[2]})
	if err == nil {
		_, err = r.Promote(context.Background(), "main", os.Args[3], nil)
	}
	if err != nil {
		os.Stderr.WriteString(err.Error())
	}
	os.Exit(1)
}

// A process that is killed in a promotion has either promoted nothing, or all once the
// next operation has run. Until the branch has moved, the old state is whole.
func TestKilledPromotion(t *testing.T) {
	t.Parallel()
	for at, promoted := range map[string]bool{"announced": false, "journal": false, "branch": true, "files": true, "index": true, "unlogged": true} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			b.write(b.primary, "gone", "gone\n")
			b.git(b.primary, "add", ".")
			b.git(b.primary, "commit", "-qm", "gone")
			r := b.open()
			w := b.add(r, Options{})
			b.write(w.Path(), "README", "two\n")
			b.write(w.Path(), "new", "new\n")
			os.Remove(filepath.Join(w.Path(), "gone"))
			commit := b.commit(w)
			cmd := exec.CommandContext(t.Context(), os.Args[0], b.primary, b.state, commit)
			cmd.Env = append(os.Environ(), "WORKTREE_TEST_KILL_AT="+at)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			var exit *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("it was not killed: %v, %s", err, stderr.String())
			}
			if at == "branch" { // as if it had been killed while it wrote the files
				b.write(b.primary, "new", "ne")
			}
			if got, err := r.Contains(t.Context(), "", commit); err != nil || got != promoted {
				t.Errorf("contains: %v, %v", got, err)
			}
			if moved, err := r.Promote(t.Context(), "main", commit, nil); err != nil || moved == promoted {
				t.Errorf("again: %v, %v", moved, err)
			}
			if b.read(b.primary, "README") != "two\n" || b.read(b.primary, "new") != "new\n" || exists(filepath.Join(b.primary, "gone")) {
				t.Error("the files have not followed")
			}
			if err := w.Remove(t.Context(), true); err != nil {
				t.Error(err)
			}
			if _, err := r.Prune(t.Context(), func(Stale) bool { return false }); err != nil {
				t.Error(err)
			}
			b.clean()
		})
	}
}
