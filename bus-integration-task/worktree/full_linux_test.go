package worktree

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const diskEnv = "WORKTREE_TEST_DISK"

// TestFullDisk runs testFullDisk in a process that has a small disk to fill.
func TestFullDisk(t *testing.T) {
	if disk := os.Getenv(diskEnv); disk != "" {
		if err := syscall.Mount("none", disk, "tmpfs", 0, "size=6m"); err != nil {
			t.Fatal(err)
		}
		testFullDisk(t)
		return
	}
	t.Parallel()
	disk := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(), diskEnv+"="+disk, "TMPDIR="+disk, "GOTMPDIR="+disk)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 && os.Geteuid() != 0 {
		t.Skipf("a disk can be mounted by root alone here: %v", err)
	}
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestFullDisk")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// Whatever is left of the disk, an operation either succeeds, or says why not and leaves
// branches, index and files as they were.
func testFullDisk(t *testing.T) {
	b := newBench(t, "")
	large := make([]byte, 200<<10)
	rand.Read(large)
	b.write(b.primary, "large", string(large))
	for i := range 100 { // for an index of several pages
		b.write(b.primary, fmt.Sprintf("%0100d", i), "")
	}
	b.git(b.primary, "add", ".")
	b.git(b.primary, "commit", "-qm", "large")
	main, index := b.git(b.primary, "rev-parse", "main"), b.read(b.primary, ".git/index")
	r := b.open()
	var w *Worktree
	var commit string
	for _, operation := range []struct {
		name string
		do   func() error
	}{
		{"Add", func() (err error) {
			w, err = r.Add(t.Context(), Options{Root: b.root})
			return err
		}},
		{"Commit", func() (err error) {
			commit, err = w.Commit(t.Context(), "", "work", Identity{})
			return err
		}},
		{"Promote", func() error {
			_, err := r.Promote(t.Context(), "main", commit, func(context.Context, string) error { return nil })
			return err
		}},
	} {
		failed := 0
		var last error
		for left := 0; ; left += 1 + left/8 { // pages
			if left > 1<<10 {
				t.Fatalf("%s never succeeds: %v", operation.name, last)
			}
			branches := b.git(b.primary, "for-each-ref")
			release := b.fill(left)
			err := operation.do()
			if err == nil {
				release()
				break
			}
			failed++
			last = err
			if text := err.Error(); !errors.Is(err, ErrGit) && !errors.Is(err, ErrContent) || !strings.Contains(strings.ToLower(text), "no space left") || strings.Contains(text, "\n") {
				t.Errorf("%s with %d pages: %v", operation.name, left, err)
			}
			if b.read(b.primary, ".git/index") != index {
				t.Errorf("%s with %d pages: the index has changed", operation.name, left)
			}
			release()
			if got := b.git(b.primary, "for-each-ref"); got != branches || b.git(b.primary, "rev-parse", "main") != main {
				t.Errorf("%s with %d pages: branches were\n%s\nand are\n%s", operation.name, left, branches, got)
			}
			if status := b.git(b.primary, "--no-optional-locks", "status", "--porcelain", "--ignored"); status != "" || b.read(b.primary, "large") != string(large) {
				t.Errorf("%s with %d pages: the primary is not clean: %s", operation.name, left, status)
			}
			for _, name := range []string{"index.lock", journalName, reserveName, "bus-task-index", "worktrees"} {
				if name != "worktrees" || operation.name == "Add" {
					if exists(filepath.Join(b.primary, ".git", name)) {
						t.Errorf("%s with %d pages: %s is left", operation.name, left, name)
					}
				}
			}
		}
		if left, _ := filepath.Glob(filepath.Join(b.primary, ".git/objects/*/*[._]*")); len(left) > 0 {
			t.Errorf("%s left parts of objects: %v", operation.name, left)
		}
		t.Logf("%s failed %d times", operation.name, failed)
		if failed < 5 {
			t.Errorf("%s failed %d times only", operation.name, failed)
		}
		if operation.name == "Add" {
			rand.Read(large[:100<<10])
			b.write(w.Path(), "large", string(large))
			b.write(w.Path(), "new/file", string(large[:50<<10]))
			large = []byte(b.read(b.primary, "large"))
		}
	}
	if b.read(b.primary, "large") == string(large) || b.git(b.primary, "rev-parse", "main") != commit {
		t.Error("the primary has not followed")
	}
	// It is known that the work is kept.
	release := b.fill(0)
	if err := w.Retain(); err != nil {
		t.Error(err)
	}
	release()
	if removed, err := r.Prune(t.Context(), func(s Stale) bool { return !s.Retained }); len(removed) > 0 || err != nil {
		t.Errorf("removed %v, %v", removed, err)
	}
	// And that it is not, when it cannot be removed. Retain has used the reserve.
	o := Options{WorktreeID: w.ID(), Reuse: true}
	w = b.add(r, o)
	release = b.fill(0)
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Remove(stopped, false); err == nil {
		t.Error("it was removed")
	}
	release()
	if w = b.add(r, o); w.Continued() {
		t.Error("what is left of it is continued")
	}
	if removed, err := r.Prune(t.Context(), func(s Stale) bool { return s.ID == o.WorktreeID }); len(removed) != 1 || err != nil {
		t.Errorf("removed %v, %v", removed, err)
	}
	if err := w.Remove(t.Context(), true); err != nil {
		t.Error(err)
	}
	b.clean()
}

// fill fills the disk but for some pages.
func (b *bench) fill(left int) (release func()) {
	b.t.Helper()
	name := filepath.Join(b.dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	size, page := int64(0), make([]byte, os.Getpagesize())
	for err == nil {
		if size > 8<<20 {
			os.Remove(name)
			b.t.Fatal("the filler is on another disk")
		}
		var n int
		n, err = f.Write(page)
		size += int64(n)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		b.t.Fatal(err)
	}
	if err := f.Truncate(max(0, size-int64(left*len(page)))); err != nil {
		b.t.Fatal(err)
	}
	return func() { os.Remove(name) }
}
