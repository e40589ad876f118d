package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A reopened task continues its worktree; when that is gone, its branch.
func TestReuse(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.openWith(Config{LockWait: time.Millisecond})
	first := b.add(r, Options{Ref: "bus#1.1", Branch: "work/x", CreateBranch: true})
	b.write(first.Path(), "one", "1\n")
	one := b.commit(first)
	b.write(first.Path(), "two", "2\n")
	again := Options{Root: b.root, Ref: "bus#1.1", Branch: "work/x", CreateBranch: true, BaseBranch: "main", WorktreeID: first.ID(), Reuse: true}
	if _, err := r.Add(t.Context(), again); !errors.Is(err, ErrLocked) {
		t.Errorf("a worktree in use: %v", err)
	}
	if removed, err := r.Prune(t.Context(), func(Stale) bool { return true }); err != nil || len(removed) > 0 {
		t.Errorf("a worktree in use was pruned: %v, %v", removed, err)
	}
	first.Close()
	if _, err := r.Add(t.Context(), Options{Root: b.root, Branch: "work/x", CreateBranch: true}); !errors.Is(err, ErrBranch) {
		t.Errorf("a branch that exists: %v", err)
	}
	second := b.add(r, again)
	if second.Path() != first.Path() || second.Head() != one {
		t.Errorf("%s at %s", second.Path(), second.Head())
	}
	if changes, err := second.Changes(t.Context(), 0); err != nil || changes.Total != 2 || changes.HeadMoved {
		t.Errorf("%+v, %v", changes, err)
	}
	two := b.commit(second)
	if parent := b.git(b.primary, "rev-parse", two+"^"); parent != one {
		t.Errorf("its parent is %s", parent)
	}
	if err := second.Remove(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	third := b.add(r, again)
	if third.Branch() != "work/x" || b.read(third.Path(), "two") != "2\n" {
		t.Errorf("branch %s", third.Branch())
	}
	b.write(third.Path(), "three", "3\n")
	three := b.commit(third)
	if moved, err := r.Promote(t.Context(), "main", three, nil); err != nil || !moved {
		t.Error(moved, err)
	}
	third.Close()
	if removed, err := r.Prune(t.Context(), func(s Stale) bool { return s.ID == third.ID() }); err != nil || len(removed) != 1 {
		t.Error(removed, err)
	}
	b.clean()
}

// A worktree whose process was killed while it wrote the files is not continued: the missing
// ones would be removed by its commit.
func TestUnfinishedWorktreeIsNotContinued(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.open()
	first := b.add(r, Options{})
	first.record.Unfinished = true
	if err := first.Retain(); err != nil {
		t.Fatal(err)
	}
	if second := b.add(r, Options{WorktreeID: first.ID(), Reuse: true}); second.ID() == first.ID() {
		t.Error("it was continued")
	}
}

// The repository that a task has put in the place of .git is not in a retained worktree.
func TestRetainedWorktreeHasItsGit(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.open()
	w := b.add(r, Options{})
	os.Remove(filepath.Join(w.Path(), ".git"))
	b.git(w.Path(), "init", "-q")
	if err := w.Retain(); err != nil {
		t.Fatal(err)
	}
	if dir := b.git(w.Path(), "rev-parse", "--absolute-git-dir"); dir != w.admin() {
		t.Errorf("its git directory is %s", dir)
	}
}

// A diff of 100 MB is counted, and only its beginning is in memory.
func TestLargeDiffIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.open()
	w := b.add(r, Options{})
	text := strings.Repeat(strings.Repeat("x", 99)+"\n", 100_000)
	for _, name := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		b.write(w.Path(), name, name+text)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	changes, err := w.Changes(t.Context(), 1000)
	diff := changes.Diff
	runtime.ReadMemStats(&after)
	if err != nil || len(diff.Text) != 1000 || diff.Size < 100_000_000 {
		t.Errorf("%d of %d bytes, %v", len(diff.Text), diff.Size, err)
	}
	if used := after.HeapSys - min(after.HeapSys, before.HeapSys); used > 64<<20 {
		t.Errorf("%d bytes of memory", used)
	}
}

// A git that hangs, with a child that holds its output, is killed with its group.
func TestCancelKillsGit(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.open()
	fifo := b.dir + "/alive"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	b.write(b.dir, "bin/git", "#!/bin/sh\ntrap '' TERM\n(trap '' TERM; exec 3>'"+fifo+"'; echo >&3; while :; do /bin/sleep 1; done) &\nwait\n")
	if err := os.Chmod(b.dir+"/bin/git", 0o755); err != nil {
		t.Fatal(err)
	}
	r.program = b.dir + "/bin/git"
	alive := make(chan *os.File)
	go func() {
		f, err := os.Open(fifo)
		if err != nil {
			t.Error(err)
		}
		f.Read(make([]byte, 1))
		alive <- f
	}()
	stopped := errors.New("claim lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() {
		_, err := r.Contains(ctx, "main", strings.Repeat("1", 40))
		done <- err
	}()
	var f *os.File
	select {
	case f = <-alive:
	case err := <-done:
		t.Fatal("it did not hang: ", err)
	}
	defer f.Close()
	cancel(stopped)
	if err := <-done; !errors.Is(err, stopped) {
		t.Error(err)
	}
	f.SetReadDeadline(time.Now().Add(20 * time.Second))
	if n, err := f.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a child of git is alive: %d, %v", n, err)
	}
}

// What a process left that was killed while it made or removed a worktree is removed, and
// nothing of a user or of a process that is running.
func TestPruneRemovesStaleFilesOfKilledProcesses(t *testing.T) {
	t.Parallel()
	b := newBench(t, "dev")
	r := b.open()
	inUse := b.add(r, Options{Ref: "bus#1.1"})
	if err := os.Remove(filepath.Join(inUse.admin(), recordName)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"made/" + lockName, "removed/" + lockName, "removed/HEAD", "damaged/" + lockName, "damaged/" + recordName, "user/HEAD", "user/gitdir"} {
		b.write(filepath.Join(r.common, "worktrees"), name, "")
	}
	if err := os.Mkdir(r.admin("empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	if removed, err := r.Prune(t.Context(), func(Stale) bool { return true }); err != nil || len(removed) > 0 {
		t.Error(removed, err)
	}
	for name, kept := range map[string]bool{"made": false, "removed": false, "empty": false, "damaged": true, "user": true, inUse.ID(): true} {
		if exists(r.admin(name)) != kept {
			t.Errorf("%s: kept is %v", name, !kept)
		}
	}
}

// In a worktree that is continued after its promotion, only new files are changes.
func TestChangesBeginAfterThePromotion(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.open()
	o := Options{Ref: "bus#1.1", Branch: "feature", CreateBranch: true}
	first := b.add(r, o)
	b.write(first.Path(), "one", "one\n")
	commit := b.commit(first)
	if done, err := first.Promote(t.Context(), false, nil); err != nil || !done.Moved {
		t.Fatalf("%+v, %v", done, err)
	}
	if err := first.Retain(); err != nil {
		t.Fatal(err)
	}
	second := b.add(r, o)
	b.write(second.Path(), "two", "two\n")
	changes, err := second.Changes(t.Context(), 0)
	if err != nil || second.ID() != first.ID() || second.Base() != commit || changes.Total != 1 {
		t.Errorf("worktree %s after %s, base %s, %+v, %v", second.ID(), first.ID(), second.Base(), changes, err)
	}
}
