package worktree

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// work adds a worktree and commits what change does in it.
func (b *bench) work(r *Repository, change func(dir string)) *Worktree {
	b.t.Helper()
	w := b.add(r, Options{})
	change(w.Path())
	b.commit(w)
	return w
}

// Two worktrees with the same base: once the first is promoted, each row rebases the
// second, or is refused with nothing changed and its branch kept.
func TestRebasedPromotion(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("same\n", 20)
	for name, test := range map[string]struct {
		first, second func(b *bench, dir string)
		user          func(b *bench) // after the first was promoted
		want          map[string]string
		kind          error
	}{
		"other files": {
			first:  func(b *bench, dir string) { b.write(dir, "one", "1\n") },
			second: func(b *bench, dir string) { b.write(dir, "two", "2\n") },
			want:   map[string]string{"one": "1\n", "two": "2\n"},
		},
		"other lines": {
			first:  func(b *bench, dir string) { b.write(dir, "long", "first\n"+lines) },
			second: func(b *bench, dir string) { b.write(dir, "long", lines+"last\n") },
			want:   map[string]string{"long": "first\n" + lines + "last\n"},
		},
		"the same change": {
			first:  func(b *bench, dir string) { b.write(dir, "one", "1\n") },
			second: func(b *bench, dir string) { b.write(dir, "one", "1\n"); b.write(dir, "two", "2\n") },
			want:   map[string]string{"one": "1\n", "two": "2\n"},
		},
		"same lines": {
			first:  func(b *bench, dir string) { b.write(dir, "README", "1\n") },
			second: func(b *bench, dir string) { b.write(dir, "README", "2\n") },
			kind:   ErrConflict,
		},
		"renamed and changed": {
			first:  func(b *bench, dir string) { os.Rename(dir+"/long", dir+"/moved") },
			second: func(b *bench, dir string) { b.write(dir, "long", lines+"last\n") },
			want:   map[string]string{"moved": lines + "last\n"},
		},
		"file and folder": {
			first:  func(b *bench, dir string) { b.write(dir, "x", "1\n") },
			second: func(b *bench, dir string) { b.write(dir, "x/y", "2\n") },
			kind:   ErrConflict,
		},
		"commit of a user": {
			first:  func(b *bench, dir string) { b.write(dir, "one", "1\n") },
			second: func(b *bench, dir string) { b.write(dir, "two", "2\n") },
			user:   func(b *bench) { b.git(b.primary, "commit", "-q", "--allow-empty", "-m", "mine") },
			kind:   ErrDiverged,
		},
		"amended by a user": {
			first:  func(b *bench, dir string) { b.write(dir, "one", "1\n") },
			second: func(b *bench, dir string) { b.write(dir, "two", "2\n") },
			user:   func(b *bench) { b.git(b.primary, "commit", "-q", "--amend", "-m", "mine") },
			kind:   ErrDiverged,
		},
		"rewound by a user": {
			first:  func(b *bench, dir string) { b.write(dir, "one", "1\n") },
			second: func(b *bench, dir string) { b.write(dir, "two", "2\n") },
			user: func(b *bench) {
				b.git(b.primary, "checkout", "-q", "--orphan", "x")
				b.git(b.primary, "commit", "-qm", "all")
				b.git(b.primary, "branch", "-qM", "main")
			},
			kind: ErrDiverged,
		},
		"dirty": {
			first:  func(b *bench, dir string) { b.write(dir, "one", "1\n") },
			second: func(b *bench, dir string) { b.write(dir, "two", "2\n") },
			user:   func(b *bench) { b.write(b.primary, "README", "mine\n") },
			kind:   ErrDirty,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			b.write(b.primary, "long", lines)
			b.write(b.primary, ".gitattributes", "README merge=union\n") // without effect
			b.git(b.primary, "add", ".")
			b.git(b.primary, "commit", "-qm", "long")
			r := b.open()
			first := b.work(r, func(dir string) { test.first(b, dir) })
			second := b.work(r, func(dir string) { test.second(b, dir) })
			tested := second.Head()
			if done, err := first.Promote(t.Context(), true, nil); err != nil || done != (Promotion{Commit: first.Head(), Moved: true}) {
				t.Fatal(done, err)
			}
			if _, err := r.Promote(t.Context(), "main", tested, nil); !errors.Is(err, ErrDiverged) {
				t.Errorf("without rebase: %v", err)
			}
			if test.user != nil {
				test.user(b)
			}
			main, status := b.git(b.primary, "rev-parse", "main"), b.git(b.primary, "status", "--porcelain")
			announced := ""
			done, err := second.Promote(t.Context(), true, func(_ context.Context, commit string) error {
				announced = commit
				return nil
			})
			if test.kind != nil {
				if !errors.Is(err, test.kind) || done.Moved || announced != "" || strings.Contains(err.Error(), "\n") {
					t.Errorf("%+v, %v", done, err)
				}
				if b.git(b.primary, "rev-parse", "main") != main || b.git(b.primary, "status", "--porcelain") != status || b.git(b.primary, "rev-parse", second.Branch()) != tested {
					t.Error("something has changed")
				}
				return
			}
			if err != nil || !done.Moved || done.Commit != announced || done.RebasedFrom != tested || done.Commit == tested {
				t.Fatalf("%+v, %v", done, err)
			}
			if got := b.git(b.primary, "log", "-1", "--format=%an %ae %cn %P %B", "main"); got != "agent agent@example.invalid bus-integration-task "+first.Head()+" work\n\nRebased-from: "+tested+"\n" {
				t.Errorf("commit: %q", got)
			}
			for file, want := range test.want {
				if got := b.read(b.primary, file); got != want {
					t.Errorf("%s is %q", file, got)
				}
			}
			if b.git(b.primary, "rev-parse", second.Branch()) != tested {
				t.Error("the tested commit is not on its branch")
			}
			first.Remove(t.Context(), true)
			if err := second.Remove(t.Context(), true); err != nil {
				t.Error(err)
			}
			b.clean()
		})
	}
}

// A worktree of several attempts has several commits, which become one.
func TestRebaseMakesOneCommit(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.open()
	first := b.work(r, func(dir string) { b.write(dir, "README", "1\n") })
	second := b.work(r, func(dir string) { b.write(dir, "two", "2\n") })
	b.write(second.Path(), "two", "3\n")
	if _, err := second.Commit(t.Context(), "", "again", Identity{}); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Promote(t.Context(), true, nil); err != nil {
		t.Fatal(err)
	}
	done, err := second.Promote(t.Context(), true, nil)
	if err != nil || !done.Moved {
		t.Fatal(done, err)
	}
	if got := b.git(b.primary, "log", "-1", "--format=%P %B", "main"); got != first.Head()+" again\n\nwork\n\nRebased-from: "+done.RebasedFrom+"\n" {
		t.Errorf("commit: %q", got)
	}
	if b.read(b.primary, "two") != "3\n" || b.read(b.primary, "README") != "1\n" {
		t.Error("the files have not followed")
	}
	first.Remove(t.Context(), true)
	second.Close()
	if removed, err := r.Prune(t.Context(), func(Stale) bool { return true }); err != nil || len(removed) != 1 {
		t.Error(removed, err) // also by another process
	}
	b.clean()
}
