package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// feature makes a branch of a user with a commit that is on no other branch.
func (b *bench) feature() (tip string) {
	b.t.Helper()
	b.git(b.primary, "checkout", "-qb", "feature")
	b.write(b.primary, "f", "mine\n")
	b.git(b.primary, "add", ".")
	b.git(b.primary, "commit", "-qm", "mine")
	b.git(b.primary, "checkout", "-q", "main")
	return b.git(b.primary, "rev-parse", "feature")
}

// A branch that was not created for a worktree is never removed with it.
func TestBranchOfUserIsKept(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(r *Repository, w *Worktree) error{
		"removed": func(_ *Repository, w *Worktree) error { return w.Remove(t.Context(), true) },
		"pruned": func(r *Repository, w *Worktree) error {
			w.Close()
			_, err := r.Prune(t.Context(), func(Stale) bool { return true })
			return err
		},
		"promoted": func(r *Repository, w *Worktree) error {
			if err := os.WriteFile(filepath.Join(w.Path(), "new"), nil, 0o644); err != nil {
				return err
			}
			if _, err := w.Commit(t.Context(), "", "work", Identity{}); err != nil {
				return err
			}
			_, err := w.Promote(t.Context(), false, nil)
			return errors.Join(err, w.Remove(t.Context(), true))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			b.feature()
			r := b.open()
			w := b.add(r, Options{Branch: "feature"})
			if err := remove(r, w); err != nil {
				t.Error(err)
			}
			if tip := b.git(b.primary, "rev-parse", "feature"); tip != w.Head() {
				t.Errorf("feature is at %s, want %s", tip, w.Head())
			}
		})
	}
}

// A task that makes its branch a symbolic reference cannot move or remove another branch.
func TestSymbolicBranchIsRefused(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(b *bench, branch string){
		"reference": func(b *bench, branch string) {
			b.git(b.primary, "symbolic-ref", "refs/heads/"+branch, "refs/heads/main")
		},
		"link": func(b *bench, branch string) {
			file := filepath.Join(b.primary, ".git/refs/heads", branch)
			if err := errors.Join(os.Remove(file), os.Symlink("refs/heads/main", file)); err != nil {
				b.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			r := b.open()
			w := b.add(r, Options{})
			b.write(w.Path(), "x", "x")
			main := b.git(b.primary, "rev-parse", "main")
			make(b, w.Branch())
			if commit, err := w.Commit(t.Context(), "", "work", Identity{}); !errors.Is(err, ErrBranch) {
				t.Errorf("Commit: %s, %v", commit, err)
			}
			if _, err := r.Promote(t.Context(), w.Branch(), main, nil); !errors.Is(err, ErrBranch) {
				t.Errorf("Promote: %v", err)
			}
			if _, err := r.Add(t.Context(), Options{Root: b.root, BaseBranch: w.Branch()}); !errors.Is(err, ErrBranch) {
				t.Errorf("Add: %v", err)
			}
			if err := w.Remove(t.Context(), true); !errors.Is(err, ErrDiverged) {
				t.Errorf("Remove: %v", err)
			}
			if got := b.git(b.primary, "rev-parse", "main"); got != main {
				t.Errorf("main is at %s", got)
			}
		})
	}
}

// A primary whose branch is a symbolic reference is refused before and in a promotion.
func TestSymbolicBaseIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.open()
	w := b.work(r, func(dir string) { b.write(dir, "new", "") })
	main := b.git(b.primary, "rev-parse", "main")
	b.git(b.primary, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
	b.git(b.primary, "symbolic-ref", "HEAD", "refs/heads/alias")
	if moved, err := r.Promote(t.Context(), "alias", w.Head(), nil); !errors.Is(err, ErrBranch) || moved {
		t.Error(moved, err)
	}
	if got := b.git(b.primary, "rev-parse", "main"); got != main {
		t.Errorf("main is at %s", got)
	}
}

// Commits that reached the branch of a worktree from elsewhere are not replaced; those of
// the task are, also where the repository keeps no logs.
func TestCommitsOfOthersAreKept(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(b *bench, w *Worktree)
		kept   bool
	}{
		"pushed": {func(b *bench, w *Worktree) {
			b.git(b.primary, "update-ref", "refs/heads/feature", b.git(b.primary, "commit-tree", "-p", "feature", "-m", "mine", "feature^{tree}"))
		}, true},
		"committed by the task": {func(b *bench, w *Worktree) {
			b.git(b.primary, "config", "core.logAllRefUpdates", "false")
			b.git(w.Path(), "add", ".")
			b.git(w.Path(), "commit", "-qm", "task")
		}, false},
		"set back":  {func(b *bench, w *Worktree) { b.git(b.primary, "update-ref", "refs/heads/feature", "main") }, false},
		"removed":   {func(b *bench, w *Worktree) { b.git(b.primary, "update-ref", "-d", "refs/heads/feature") }, false},
		"not moved": {func(b *bench, w *Worktree) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			b.feature()
			r := b.open()
			w := b.add(r, Options{Branch: "feature"})
			b.write(w.Path(), "x", "x")
			row.change(b, w)
			tip, _ := b.tryGit(b.primary, "rev-parse", "--verify", "-q", "feature")
			commit, err := w.Commit(t.Context(), "", "work", Identity{})
			want := commit
			if row.kept {
				want = tip
			}
			if row.kept != errors.Is(err, ErrDiverged) || !row.kept && err != nil || b.git(b.primary, "rev-parse", "feature") != want {
				t.Errorf("%v; feature is at %s, want %s", err, b.git(b.primary, "rev-parse", "feature"), want)
			}
		})
	}
}

// What is committed is what was examined.
func TestChangedFilesAreNotCommitted(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.open()
	w := b.add(r, Options{})
	b.write(w.Path(), "new", "one\n")
	examined, err := w.Changes(t.Context(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	b.write(w.Path(), "later", "")
	if commit, err := w.Commit(t.Context(), examined.Tree, "work", Identity{}); !errors.Is(err, ErrChanged) || b.git(b.primary, "rev-parse", w.Branch()) != w.Base() {
		t.Error(commit, err)
	}
	os.Remove(filepath.Join(w.Path(), "later"))
	commit, err := w.Commit(t.Context(), examined.Tree, "work", Identity{})
	if err != nil || b.git(b.primary, "rev-parse", commit+"^{tree}") != examined.Tree {
		t.Error(commit, err)
	}
}

// Work that was retained in another folder is not given up for a new worktree.
func TestRetainedWorkInAnotherFolderStays(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.openWith(Config{LockWait: time.Minute})
	o := Options{Root: b.root, Ref: "bus#1.1", Branch: "work/x", CreateBranch: true}
	first := b.add(r, o)
	b.write(first.Path(), "two", "")
	if err := first.Retain(); err != nil {
		t.Fatal(err)
	}
	moved := o
	moved.Root = t.TempDir()
	if _, err := r.Add(t.Context(), moved); !errors.Is(err, ErrBranch) || !strings.Contains(err.Error(), first.Path()) {
		t.Errorf("in another folder: %v", err)
	}
	if !exists(filepath.Join(first.Path(), "two")) {
		t.Error("the work is gone")
	}
	second := b.add(r, o)
	if second.ID() != first.ID() {
		t.Error("it is not continued")
	}
	if err := second.Remove(t.Context(), true); err != nil {
		t.Error(err)
	}
}

// An attempt that waits for the one before finds what that has retained.
func TestWorkThatIsRetainedMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.openWith(Config{LockWait: time.Minute})
	o := Options{Root: b.root, Ref: "bus#1.1", Branch: "work/x", CreateBranch: true}
	first := b.add(r, o)
	b.write(first.Path(), "two", "")
	next := make(chan *Worktree)
	read := make(chan struct{})
	r.waiting = func() { close(read) }
	go func() {
		w, err := r.Add(context.Background(), o)
		if err != nil {
			t.Error(err)
		}
		next <- w
	}()
	<-read
	if err := first.Retain(); err != nil {
		t.Fatal(err)
	}
	second := <-next
	if second.ID() != first.ID() || !exists(filepath.Join(second.Path(), "two")) {
		t.Error("the work is gone")
	}
	if err := second.Remove(t.Context(), true); err != nil {
		t.Error(err)
	}
}

// The next attempt at a task gets the new branch that the one before has created: with the
// worktree if that was retained, else in a new one. Other tasks do not get it.
func TestNewBranchIsContinued(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		end   func(r *Repository, w *Worktree) error
		fresh bool // the worktree is another one
	}{
		"killed":   {func(_ *Repository, w *Worktree) error { return w.Close() }, true},
		"retained": {func(_ *Repository, w *Worktree) error { return w.Retain() }, false},
		"pruned": {func(r *Repository, w *Worktree) error {
			w.Close()
			_, err := r.Prune(context.Background(), func(Stale) bool { return true })
			return err
		}, true},
		"removed": {func(_ *Repository, w *Worktree) error { return w.Remove(context.Background(), false) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			r := b.openWith(Config{LockWait: time.Second})
			o := Options{Root: b.root, Ref: "bus#1.1", Branch: "work/x", CreateBranch: true}
			first := b.add(r, o)
			if _, err := r.Add(t.Context(), o); !errors.Is(err, ErrLocked) {
				t.Errorf("a worktree in use: %v", err)
			}
			b.write(first.Path(), "one", "")
			one := b.commit(first)
			b.write(first.Path(), "two", "")
			if err := row.end(r, first); err != nil {
				t.Fatal(err)
			}
			other := o
			other.Ref = "bus#2.1"
			if _, err := r.Add(t.Context(), other); !errors.Is(err, ErrBranch) {
				t.Errorf("another task: %v", err)
			}
			second := b.add(r, o)
			if (second.ID() != first.ID()) != row.fresh || second.Continued() == row.fresh || second.Head() != one || second.Base() == one || !exists(filepath.Join(second.Path(), "one")) || exists(filepath.Join(second.Path(), "two")) == row.fresh {
				t.Errorf("worktree %s after %s, at %s from %s", second.ID(), first.ID(), second.Head(), second.Base())
			}
			if done, err := second.Promote(t.Context(), false, nil); err != nil || done.Commit != one {
				t.Errorf("%+v, %v", done, err)
			}
			if err := second.Remove(t.Context(), true); err != nil {
				t.Error(err)
			}
			first.Remove(t.Context(), false)
			b.clean()
		})
	}
}
