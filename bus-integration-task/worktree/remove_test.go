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

// removeWithFew removes a folder in a process that can open few files.
func removeWithFew(dir string) {
	few := syscall.Rlimit{Cur: 100, Max: 100}
	err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few)
	if err == nil {
		err = removeAll(context.Background(), filepath.Dir(dir), dir)
	}
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}

// Folders that are deeper than a process can hold, and too deep for a path, are removed.
func TestHostileDepth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	for _, d := range []string{"outside", "tree"} {
		if err := os.MkdirAll(filepath.Join(dir, d, "kept"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	at, err := os.OpenRoot(filepath.Join(dir, "tree"))
	name := strings.Repeat("d", 100)
	for range 1000 {
		if err == nil {
			err = at.Symlink(outside, "link")
		}
		if err == nil {
			err = at.Mkdir(name, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
		var below *os.Root
		if below, err = at.OpenRoot(name); err == nil {
			err = at.Chmod(".", 0o500)
		}
		at.Close()
		at = below
	}
	at.Close()
	c := exec.Command(os.Args[0])
	c.Env = []string{"WORKTREE_TEST_REMOVE=" + filepath.Join(dir, "tree"), "GORACE=atexit_sleep_ms=0"}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if exists(filepath.Join(dir, "tree")) || !exists(filepath.Join(outside, "kept")) {
		t.Error("the tree exists, or what is outside does not")
	}
}

// Work for one branch is not promoted to another.
func TestOtherBase(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	b.git(b.primary, "branch", "release")
	r := b.open()
	o := Options{Root: b.root, Ref: "bus#1.1", Branch: "task/1", CreateBranch: true}
	w := b.add(r, o)
	if err := w.Retain(); err != nil {
		t.Fatal(err)
	}
	o.BaseBranch = "release"
	for _, o := range []Options{o, {Root: b.root, WorktreeID: w.ID(), Reuse: true, BaseBranch: "release"}} {
		if _, err := r.Add(t.Context(), o); !errors.Is(err, ErrBranch) || !strings.Contains(err.Error(), "not for release") {
			t.Error(err)
		}
	}
	o.BaseBranch = "main"
	if w = b.add(r, o); !w.Continued() {
		t.Error("it is not continued")
	}
}

// The rest of a worktree whose removal did not end is not continued, and is removed.
func TestInterruptedRemoval(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*Repository, Options) error{
		"by Prune": func(r *Repository, _ Options) error {
			_, err := r.Prune(context.Background(), func(s Stale) bool { return !s.Retained })
			return err
		},
		"by the next attempt": func(r *Repository, o Options) error {
			w, err := r.Add(context.Background(), o)
			if err != nil {
				return err
			}
			if w.continued {
				err = errors.New("it was continued")
			}
			return errors.Join(err, w.Remove(context.Background(), true))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			r := b.open()
			o := Options{Root: b.root, Ref: "bus#1.1", Branch: "task/1", CreateBranch: true}
			w := b.add(r, o)
			b.write(w.Path(), "work", "all of it")
			if err := w.Retain(); err != nil {
				t.Fatal(err)
			}
			w = b.add(r, o)
			stopped := errors.New("stopped")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(stopped)
			if err := w.Remove(ctx, false); !errors.Is(err, stopped) || !errors.Is(err, ErrGit) {
				t.Error(err)
			}
			o.Reuse, o.WorktreeID = true, w.ID()
			if err := remove(r, o); err != nil {
				t.Error(err)
			}
			b.clean()
		})
	}
}
