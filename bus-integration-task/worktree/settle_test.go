package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// killed makes the primary look as if a promotion of w had been killed after the branch
// moved, and returns its journal.
func (b *bench) killed(r *Repository, w *Worktree) journal {
	b.t.Helper()
	j := journal{Branch: "main", Old: b.git(b.primary, "rev-parse", "main"), New: w.Head()}
	b.write(b.primary, ".git/refs/heads/main", j.New+"\n") // git can have hooks
	if err := r.writeJournal(j); err != nil {
		b.t.Fatal(err)
	}
	return j
}

// restore makes the primary that of a commit.
func (b *bench) restore(commit string) {
	b.t.Helper()
	os.Remove(filepath.Join(b.primary, ".git", "index.lock"))
	os.Remove(filepath.Join(b.primary, ".git", journalName))
	b.git(b.primary, "clean", "-fdqx")
	b.git(b.primary, "reset", "-q", "--hard", commit)
}

// undo undoes a promotion that has left files.
func (b *bench) undo(r *Repository, w *Worktree, files map[string]string) *names {
	b.t.Helper()
	p, err := r.exclusive(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	defer p.close()
	j := b.killed(r, w)
	b.put(files)
	users, err := r.undo(b.t.Context(), p, j)
	if err != nil {
		b.t.Error(err)
	}
	return users
}

// Each row is what a user does while a promotion is announced: it is refused, and nothing
// of it is lost.
func TestEditsDuringAnnouncementAreKept(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		edit func(b *bench)
		kind error
	}{
		"a file that it changes": {func(b *bench) { b.write(b.primary, "README", "mine\n") }, ErrDirty},
		"a file that it adds":    {func(b *bench) { b.write(b.primary, "new", "mine\n") }, ErrDirty},
		"two files":              {func(b *bench) { b.write(b.primary, "other", "mine\n"); b.write(b.primary, "README", "x\n") }, ErrDirty},
		"a file that it leaves":  {func(b *bench) { b.write(b.primary, "other", "mine\n") }, ErrDirty},
		"a merge":                {func(b *bench) { b.write(b.primary, ".git/MERGE_HEAD", b.git(b.primary, "rev-parse", "HEAD")+"\n") }, ErrDirty},
		"another branch":         {func(b *bench) { b.git(b.primary, "checkout", "-qb", "mine") }, ErrBranch},
		"a commit":               {func(b *bench) { b.git(b.primary, "commit", "-q", "--allow-empty", "-m", "mine") }, ErrDiverged},
		"a commit by another task": {func(b *bench) {
			b.git(b.primary, "update-ref", "refs/heads/main", b.git(b.primary, "commit-tree", "-p", "main", "-m", "x", "main^{tree}"))
		}, ErrDiverged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			b.write(b.primary, "other", "other\n")
			b.git(b.primary, "add", ".")
			b.git(b.primary, "commit", "-qm", "other")
			r := b.open()
			w := b.work(r, func(dir string) { b.write(dir, "README", "two\n"); b.write(dir, "new", "new\n") })
			state := func() string {
				return strings.Join([]string{b.git(b.primary, "rev-parse", "HEAD", "main"), b.git(b.primary, "status", "--porcelain", "-b"),
					b.read(b.primary, "README"), b.read(b.primary, "new"), b.read(b.primary, "other")}, "\n")
			}
			var before string
			moved, err := r.Promote(t.Context(), "main", w.Head(), func(context.Context, string) error {
				os.Remove(r.indexLock()) // as a user who does not wait
				row.edit(b)
				before = state()
				return nil
			})
			if moved || !errors.Is(err, row.kind) {
				t.Errorf("%v, %v", moved, err)
			}
			if after := state(); after != before {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
		})
	}
}

// An index.lock of the git of a user outlives a promotion.
func TestIndexLockOfUserIsKept(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	for name, announced := range map[string]error{"a promotion that is refused": refused, "one that succeeds": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			r := b.open()
			w := b.work(r, func(dir string) { b.write(dir, "README", "two\n") })
			moved, err := r.Promote(t.Context(), "main", w.Head(), func(context.Context, string) error {
				os.Remove(r.indexLock()) // as a user who does not wait
				b.write(b.primary, ".git/index.lock", "mine\n")
				return announced
			})
			if !errors.Is(err, announced) || moved != (announced == nil) {
				t.Errorf("%v, %v", moved, err)
			}
			if got := b.read(b.primary, ".git/index.lock"); got != "mine\n" {
				t.Errorf("index.lock is %q", got)
			}
		})
	}
}

// promotion is a promotion that has files of all kinds, and what a user can do to them.
func (b *bench) promotion(r *Repository) *Worktree {
	b.t.Helper()
	b.write(b.primary, "gone", "gone\n")
	b.write(b.primary, "other", "other\n")
	b.write(b.primary, "e/f", "f\n")
	os.Symlink("e", filepath.Join(b.primary, "link"))
	b.git(b.primary, "add", ".")
	b.git(b.primary, "commit", "-qm", "all kinds")
	return b.work(r, func(dir string) {
		b.write(dir, "README", "two\n")
		b.write(dir, "new/file", "new\n")
		os.Remove(filepath.Join(dir, "gone"))
		os.Remove(filepath.Join(dir, "link"))
		b.write(dir, "link/f", "g\n")
	})
}

// Each row has the files that a killed checkout, or a user, has left; "" removes one.
var unfinished = map[string]struct {
	files   map[string]string
	left    int    // files of the promotion that undoing leaves to the user
	blocked string // the file that keeps the promotion from being completed
	status  string // once it is completed
}{
	"nothing written":     {},
	"some written":        {files: map[string]string{"README": "two\n", "gone": ""}},
	"all written":         {files: map[string]string{"README": "two\n", "gone": "", "new/file": "new\n", "link": "", "link/f": "g\n"}},
	"partly written":      {files: map[string]string{"README": "tw", "new/file": "n"}},
	"unlinked":            {files: map[string]string{"README": "", "link": ""}},
	"user changes":        {files: map[string]string{"README": "mine\n"}, left: 1, blocked: "README"},
	"user adds":           {files: map[string]string{"new/file": "mine\n"}, left: 1, blocked: "new/file"},
	"user in the way":     {files: map[string]string{"link": "", "link/mine": "mine\n"}, left: 1, status: "?? link/mine"},
	"user makes a file":   {files: map[string]string{"new": "mine\n"}, blocked: "new"},
	"user leaves them":    {files: map[string]string{"other": "mine\n", "untracked": "mine\n"}, status: " M other\n?? untracked"},
	"user after checkout": {files: map[string]string{"README": "two\nmine\n", "new/file": "new\n"}, left: 1, blocked: "README"},
}

func (b *bench) put(files map[string]string) {
	for _, remove := range []bool{true, false} {
		for name, text := range files {
			if (text == "") != remove {
				continue
			}
			if remove {
				os.Remove(filepath.Join(b.primary, name))
			} else {
				b.write(b.primary, name, text)
			}
		}
	}
}

// mine returns the files of users with their content.
func mine(files map[string]string) map[string]string {
	kept := make(map[string]string)
	for name, text := range files {
		if strings.HasSuffix(text, "mine\n") {
			kept[name] = text
		}
	}
	return kept
}

// A promotion that is undone leaves what a user has changed, and restores all else.
func TestUndoKeepsEdits(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.open()
	w := b.promotion(r)
	main := b.git(b.primary, "rev-parse", "main")
	for name, row := range unfinished {
		t.Run(name, func(t *testing.T) {
			b.restore(main)
			if users := b.undo(r, w, row.files); users.total != row.left {
				t.Errorf("left to the user: %s", users)
			}
			kept := mine(row.files)
			for file, text := range kept {
				if got := b.read(b.primary, file); got != text {
					t.Errorf("%s is %q", file, got)
				}
			}
			if b.git(b.primary, "rev-parse", "main") != main || exists(filepath.Join(r.gitDir, journalName)) {
				t.Error("the branch or the journal is left")
			}
			for line := range strings.SplitSeq(b.git(b.primary, "status", "--porcelain", "-uall"), "\n") {
				if line == "" {
					continue
				}
				if file := line[min(3, len(line)):]; kept[file] == "" && !(file == "link" && kept["link/mine"] != "") {
					t.Errorf("%q is not restored", line)
				}
			}
		})
	}
}

// A promotion that was killed is completed, also with changes of a user to other files. If
// one of its files was changed, nothing is, until the user has followed the advice.
func TestRecoveryKeepsEdits(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.open()
	w := b.promotion(r)
	main := b.git(b.primary, "rev-parse", "main")
	for name, row := range unfinished {
		t.Run(name, func(t *testing.T) {
			b.restore(main)
			b.killed(r, w)
			if err := r.lockIndex(); err != nil {
				t.Fatal(err)
			}
			b.put(row.files)
			contains := func() error {
				got, err := r.Contains(t.Context(), "main", w.Head())
				if !got {
					t.Errorf("%v, %v", got, err)
				}
				return err
			}
			err := contains()
			for file, text := range mine(row.files) {
				if got := b.read(b.primary, file); got != text {
					t.Errorf("%s is %q after %v", file, got, err)
				}
			}
			if (row.blocked != "") != errors.Is(err, ErrDirty) || row.blocked == "" && err != nil {
				t.Fatalf("%v", err)
			}
			if exists(r.indexLock()) {
				t.Error("index.lock keeps the user from acting")
			}
			if row.blocked != "" {
				if _, err := b.tryGit(b.primary, "checkout", "HEAD", "--", row.blocked); err != nil { // it is in no commit
					os.Remove(filepath.Join(b.primary, row.blocked))
				}
				if err := contains(); err != nil {
					t.Error(err)
				}
			}
			if got := b.git(b.primary, "status", "--porcelain"); got != row.status || exists(filepath.Join(r.gitDir, journalName)) {
				t.Errorf("status %q, want %q", got, row.status)
			}
		})
	}
}

// What a user has staged after a promotion was killed is kept, or must be unstaged first.
func TestRecoveryKeepsStagedChanges(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"other": "M  other", "README": ""} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			r := b.open()
			w := b.promotion(r)
			b.killed(r, w)
			b.write(b.primary, file, "mine\n")
			b.git(b.primary, "add", file)
			if _, err := r.Contains(t.Context(), "main", w.Head()); errors.Is(err, ErrDirty) != (want == "") || b.read(b.primary, file) != "mine\n" {
				t.Errorf("%v", err)
			}
			if want == "" {
				b.git(b.primary, "checkout", "HEAD", "--", file)
			}
			if got, err := r.Contains(t.Context(), "main", w.Head()); err != nil || !got || b.git(b.primary, "status", "--porcelain") != want {
				t.Errorf("%v, %v, status %q", got, err, b.git(b.primary, "status", "--porcelain"))
			}
		})
	}
}

// A folder that takes the place of a link is promoted, and undone, without a file that the
// link leads to, also outside the checkout.
func TestFolderReplacesLink(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{"inside": "e", "outside": "../outside"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			b.write(b.primary, "e/f", "f\n")
			b.write(b.dir, "outside/f", "f\n")
			os.Symlink(target, filepath.Join(b.primary, "d"))
			b.git(b.primary, "add", ".")
			b.git(b.primary, "commit", "-qm", "link")
			r := b.open()
			w := b.work(r, func(dir string) { os.Remove(filepath.Join(dir, "d")); b.write(dir, "d/f", "f\n") })
			if users := b.undo(r, w, nil); users.total > 0 {
				t.Error(users)
			}
			if b.read(b.primary, "e/f") != "f\n" || b.read(b.dir, "outside/f") != "f\n" || b.git(b.primary, "status", "--porcelain") != "" {
				t.Errorf("after undo: %s", b.git(b.primary, "status", "--porcelain"))
			}
			if moved, err := r.Promote(t.Context(), "main", w.Head(), nil); err != nil || !moved || b.git(b.primary, "status", "--porcelain") != "" {
				t.Error(moved, err)
			}
			if b.read(b.primary, "e/f") != "f\n" || b.read(b.dir, "outside/f") != "f\n" {
				t.Error("a file behind the link was changed")
			}
		})
	}
}
