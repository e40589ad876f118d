package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Each row changes a worktree as a task may; the commit has exactly what want lists, as
// status and path, or the error.
func TestContent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(b *bench, dir string)
		want   string
		kind   error
	}{
		"names": {func(b *bench, dir string) {
			for _, name := range []string{"a b", "new\nline", "-x", "--force", "\xff\xfe", " lead", "tab\t", `back\slash`, ":(top)x", "*", "é", "README.Md", "readme"} {
				b.write(dir, name, "x\n")
			}
		}, "A  lead|A *|A --force|A -x|A :(top)x|A README.Md|A a b|A back\\slash|A new\nline|A readme|A tab\t|A é|A \xff\xfe", nil},
		"file to folder":   {func(b *bench, dir string) { os.Remove(dir + "/README"); b.write(dir, "README/x", "x") }, "D README|A README/x", nil},
		"folder to file":   {func(b *bench, dir string) { os.RemoveAll(dir + "/d"); b.write(dir, "d", "x") }, "A d|D d/f", nil},
		"folder to link":   {func(b *bench, dir string) { os.Rename(dir+"/d", dir+"/e"); os.Symlink("e", dir+"/d") }, "A d|D d/f|A e/f", nil},
		"link out":         {func(b *bench, dir string) { os.RemoveAll(dir + "/d"); os.Symlink("/etc", dir+"/d") }, "A d|D d/f", nil},
		"file to link":     {func(b *bench, dir string) { os.Remove(dir + "/README"); os.Symlink("/etc/passwd", dir+"/README") }, "T README", nil},
		"mode":             {func(b *bench, dir string) { os.Chmod(dir+"/README", 0o755) }, "M README", nil},
		"ignored":          {func(b *bench, dir string) { b.write(dir, ".gitignore", "*.o\n"); b.write(dir, "x.o", "x") }, "A .gitignore", nil},
		"untracked fifo":   {func(b *bench, dir string) { syscall.Mkfifo(dir+"/fifo", 0o600); b.write(dir, "x", "x") }, "A x", nil},
		"tracked fifo":     {func(b *bench, dir string) { os.Remove(dir + "/README"); syscall.Mkfifo(dir+"/README", 0o600) }, "", ErrContent},
		"fifo of patterns": {func(b *bench, dir string) { syscall.Mkfifo(dir+"/.gitignore", 0o600) }, "", ErrContent},
		"fifo attributes":  {func(b *bench, dir string) { syscall.Mkfifo(dir+"/d/.gitattributes", 0o600) }, "", ErrContent},
		"nested":           {func(b *bench, dir string) { b.git(dir, "init", "-q", "nested"); b.write(dir, "nested/x", "x") }, "", ErrContent},
		"nested fifo": {func(b *bench, dir string) {
			os.MkdirAll(dir+"/nested/.git/objects", 0o755)
			os.MkdirAll(dir+"/nested/.git/refs", 0o755)
			syscall.Mkfifo(dir+"/nested/.git/HEAD", 0o600)
		}, "", ErrContent},
		"nested link": {func(b *bench, dir string) {
			os.MkdirAll(dir+"/fake/objects", 0o755)
			os.MkdirAll(dir+"/fake/refs", 0o755)
			syscall.Mkfifo(dir+"/fake/HEAD", 0o600)
			b.write(dir, "d/.git", "gitdir: ../fake\n")
		}, "", ErrContent},
		"nested ignored": {func(b *bench, dir string) {
			b.write(dir, ".gitignore", "/build/\n:(top)*\n")
			b.git(dir, "init", "-q", ":(top)*")
			os.MkdirAll(dir+"/build/x/.git/objects", 0o755)
			os.MkdirAll(dir+"/build/x/.git/refs", 0o755)
			syscall.Mkfifo(dir+"/build/x/.git/HEAD", 0o600)
		}, "A .gitignore", nil},
		"too many": {func(b *bench, dir string) {
			for i := range 40 {
				b.write(dir, fmt.Sprint(i), "x")
			}
		}, "", ErrTooLarge},
		"too large":        {func(b *bench, dir string) { b.write(dir, "x", ""); os.Truncate(dir+"/x", 1<<40) }, "", ErrTooLarge},
		"replaced by link": {func(b *bench, dir string) { os.RemoveAll(dir); os.Symlink(b.primary, dir) }, "", ErrGone},
		"removed":          {func(b *bench, dir string) { os.RemoveAll(dir) }, "", ErrGone},
		"hidden in index": {func(b *bench, dir string) {
			b.write(dir, "README", "two\n")
			b.git(dir, "update-index", "--assume-unchanged", "README")
		}, "M README", nil},
		"broken index": {func(b *bench, dir string) {
			b.write(dir, "README", "two\n")
			b.write(b.git(dir, "rev-parse", "--git-dir"), "index", "x")
		}, "M README", nil},
		"no .git":     {func(b *bench, dir string) { os.Remove(dir + "/.git"); b.write(dir, "x", "x") }, "A x", nil},
		".git folder": {func(b *bench, dir string) { os.Remove(dir + "/.git"); b.git(dir, "init", "-q"); b.write(dir, "x", "x") }, "A x", nil},
		".git fifo": {func(b *bench, dir string) {
			os.Remove(dir + "/.git")
			syscall.Mkfifo(dir+"/.git", 0o600)
			b.write(dir, "x", "x")
		}, "A x", nil},
		"own commits": {func(b *bench, dir string) {
			b.write(dir, "x", "x")
			b.git(dir, "add", "x")
			b.git(dir, "commit", "-qm", "mine")
			b.write(dir, "y", "y")
		}, "A x|A y", nil},
		"other branch": {func(b *bench, dir string) { b.git(dir, "checkout", "-qb", "mine"); b.write(dir, "x", "x") }, "A x", nil},
		"replaced object": {func(b *bench, dir string) {
			b.git(dir, "replace", "HEAD:README", b.git(dir, "rev-parse", "HEAD:d/f"))
			b.write(dir, "x", "x")
		}, "A x", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			b.write(b.primary, "d/f", "f\n")
			b.git(b.primary, "add", ".")
			b.git(b.primary, "commit", "-qm", "folder")
			r, err := Open(t.Context(), b.primary, Config{Workspace: b.workspace, State: b.state, MaxFiles: 30, MaxBytes: 1 << 20, Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			w := b.add(r, Options{})
			test.change(b, w.Path())
			commit, err := w.Commit(t.Context(), "", "work", Identity{})
			if !errors.Is(err, test.kind) || err != nil && strings.Contains(err.Error(), "\n") {
				t.Fatalf("%v, want %v", err, test.kind)
			}
			if err != nil {
				if b.git(b.primary, "rev-parse", w.Branch()) != w.Base() {
					t.Error("the branch has moved")
				}
				if err := w.Remove(t.Context(), true); err != nil {
					t.Error(err)
				}
				return
			}
			var got []string
			fields := strings.Split(b.git(b.primary, "--no-replace-objects", "diff-tree", "-r", "-z", "--no-renames", "--name-status", w.Base(), commit), "\x00")
			for i := 0; i+1 < len(fields); i += 2 {
				got = append(got, fields[i]+" "+fields[i+1])
			}
			if text := strings.Join(got, "|"); text != test.want {
				t.Errorf("committed %q, want %q", text, test.want)
			}
			if parent := b.git(b.primary, "rev-parse", commit+"^"); parent != w.Base() {
				t.Errorf("its parent is %s", parent)
			}
			if status := b.git(w.Path(), "status", "--porcelain", "--branch"); status != "## "+w.Branch() {
				t.Errorf("the worktree was not restored: %q", status)
			}
			if moved, err := r.Promote(t.Context(), "main", commit, nil); err != nil || !moved {
				t.Error(moved, err)
			}
			if status := b.git(b.primary, "--no-replace-objects", "status", "--porcelain"); status != "" {
				t.Errorf("the primary is not clean: %q", status)
			}
			if err := w.Remove(t.Context(), true); err != nil {
				t.Error(err)
			}
		})
	}
}

// Of many tasks at once each commit lands exactly once, or is refused as diverged with
// its branch kept.
func TestManyTasksOfOneModule(t *testing.T) {
	t.Parallel()
	const tasks = 20
	b := newBench(t, "")
	base := b.git(b.primary, "rev-parse", "main")
	var group sync.WaitGroup
	var mutex sync.Mutex
	promoted, kept := map[string]bool{}, map[string]string{}
	for i := range tasks {
		group.Go(func() {
			r, err := Open(t.Context(), b.primary, Config{Workspace: b.workspace, State: b.state})
			if err != nil {
				t.Error(err)
				return
			}
			w, err := r.Add(t.Context(), Options{Root: b.root, Ref: "same"})
			if err != nil {
				t.Error(err)
				return
			}
			b.write(w.Path(), fmt.Sprintf("file%d", i), "x\n")
			commit, err := w.Commit(t.Context(), "", "work", Identity{})
			if err != nil {
				t.Error(err)
				return
			}
			moved, err := r.Promote(t.Context(), "main", commit, func(context.Context, string) error { return nil })
			mutex.Lock()
			defer mutex.Unlock()
			switch {
			case err == nil && moved:
				promoted[commit] = true
				err = w.Remove(t.Context(), true)
			case errors.Is(err, ErrDiverged):
				kept[w.Branch()] = commit
				err = w.Remove(t.Context(), false)
			}
			if err != nil {
				t.Error(moved, err)
			}
		})
	}
	group.Wait()
	if len(promoted)+len(kept) != tasks || len(promoted) == 0 {
		t.Errorf("%d promoted, %d kept", len(promoted), len(kept))
	}
	landed := strings.Fields(b.git(b.primary, "rev-list", base+"..main"))
	if len(landed) != len(promoted) {
		t.Errorf("%d landed of %d", len(landed), len(promoted))
	}
	for branch, commit := range kept {
		if b.git(b.primary, "rev-parse", branch) != commit {
			t.Errorf("%s is lost", branch)
		}
		b.git(b.primary, "branch", "-qD", branch)
	}
	b.clean()
}
