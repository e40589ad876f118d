package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommitAndPromote(t *testing.T) {
	t.Parallel()
	for _, module := range []string{"", "bus-dev", "modules/bus-dev"} {
		t.Run(module, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, module)
			r := b.open()
			w := b.add(r, Options{Ref: "busdk#81.1"})
			if got := b.git(w.Path(), "status", "--porcelain", "--branch"); got != "## "+w.Branch() {
				t.Errorf("plain git in the worktree: %q", got)
			}
			b.write(w.Path(), "README", "two\n")
			b.write(w.Path(), "new/file", "new\n")
			changes, err := w.Changes(t.Context(), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if changes.HeadMoved || changes.Total != 2 || fmt.Sprint(changes.Files) != "[{README 77 100644} {new/file 65 100644}]" {
				t.Errorf("changes: %+v", changes)
			}
			diff := changes.Diff
			if !strings.Contains(diff.Text, "-one\n+two\n") || !strings.Contains(diff.Text, "+new\n") || diff.Size != int64(len(diff.Text)) {
				t.Errorf("diff of %d: %q", diff.Size, diff.Text)
			}
			commit := b.commit(w)
			if tree := b.git(b.primary, "rev-parse", commit+"^{tree}"); tree != changes.Tree {
				t.Errorf("tree %s, changes had %s", tree, changes.Tree)
			}
			if got := b.git(b.primary, "log", "-1", "--format=%an %ae %cn %s %P", w.Branch()); got != "agent agent@example.invalid bus-integration-task work "+w.Base() {
				t.Errorf("commit: %q", got)
			}
			if got := b.git(w.Path(), "status", "--porcelain"); got != "" {
				t.Errorf("the worktree is not clean: %q", got)
			}
			announced := ""
			moved, err := r.Promote(t.Context(), "main", commit, func(_ context.Context, commit string) error {
				if announced = commit; b.git(b.primary, "rev-parse", "main") != w.Base() || b.read(b.primary, "README") != "one\n" {
					t.Error("something moved before the announcement")
				}
				return nil
			})
			if err != nil || !moved || announced != commit {
				t.Fatal(moved, err, announced)
			}
			if b.git(b.primary, "rev-parse", "HEAD") != commit || b.read(b.primary, "README") != "two\n" || b.read(b.primary, "new/file") != "new\n" {
				t.Error("the primary has not followed")
			}
			if log := b.git(b.primary, "reflog", "-1", "HEAD"); !strings.Contains(log, "fast-forward") {
				t.Errorf("log of HEAD: %q", log)
			}
			if moved, err := r.Promote(t.Context(), "main", commit, func(context.Context, string) error {
				t.Error("an existing commit is announced")
				return nil
			}); err != nil || moved {
				t.Error(moved, err)
			}
			for name, want := range map[string]bool{commit: true, w.Base(): true, strings.Repeat("0", 39) + "1": false} {
				if got, err := r.Contains(t.Context(), "", name); err != nil || got != want {
					t.Errorf("contains %s: %v, %v", name, got, err)
				}
			}
			if err := w.Remove(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			b.clean()
		})
	}
}

func TestNoChangeIsNotCommitted(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.open()
	w := b.add(r, Options{})
	if changes, err := w.Changes(t.Context(), 0); err != nil || changes.Total != 0 {
		t.Error(changes, err)
	}
	if _, err := w.Commit(t.Context(), "", "work", Identity{}); !errors.Is(err, ErrNoChange) {
		t.Error(err)
	}
	if err := w.Remove(t.Context(), true); err != nil {
		t.Error(err)
	}
	b.clean()
}

// Each row changes the primary so that a promotion must be refused, and nothing moves.
func TestPromotionIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(b *bench)
		kind    error
	}{
		"changed file":      {func(b *bench) { b.write(b.primary, "README", "mine\n") }, ErrDirty},
		"changed elsewhere": {func(b *bench) { b.write(b.primary, "other", "mine\n") }, ErrDirty},
		"staged file":       {func(b *bench) { b.write(b.primary, "x", "x"); b.git(b.primary, "add", "x") }, ErrDirty},
		"intent to add":     {func(b *bench) { b.write(b.primary, "x", "x"); b.git(b.primary, "add", "-N", "x") }, ErrDirty},
		"removed file":      {func(b *bench) { os.Remove(filepath.Join(b.primary, "README")) }, ErrDirty},
		"untracked in way":  {func(b *bench) { b.write(b.primary, "new", "mine\n") }, ErrDirty},
		"ignored in way":    {func(b *bench) { b.write(b.primary, ".git/info/exclude", "new\n"); b.write(b.primary, "new", "mine\n") }, ErrDirty},
		"folder in way":     {func(b *bench) { b.write(b.primary, "new/mine", "mine\n") }, ErrDirty},
		"assumed unchanged": {func(b *bench) {
			b.git(b.primary, "update-index", "--assume-unchanged", "README")
			b.write(b.primary, "README", "mine\n")
		}, ErrDirty},
		"skipped file": {func(b *bench) {
			b.git(b.primary, "update-index", "--skip-worktree", "README")
			b.write(b.primary, "README", "mine\n")
		}, ErrUnsupported},
		"merge in progress":  {func(b *bench) { b.write(b.primary, ".git/MERGE_HEAD", b.git(b.primary, "rev-parse", "HEAD")+"\n") }, ErrDirty},
		"rebase in progress": {func(b *bench) { os.Mkdir(filepath.Join(b.primary, ".git/rebase-merge"), 0o755) }, ErrDirty},
		"git is running":     {func(b *bench) { b.write(b.primary, ".git/index.lock", "") }, ErrDirty},
		"diverged":           {func(b *bench) { b.git(b.primary, "commit", "-q", "--allow-empty", "-m", "mine") }, ErrDiverged},
		"detached":           {func(b *bench) { b.git(b.primary, "checkout", "-q", "--detach") }, ErrBranch},
		"other branch":       {func(b *bench) { b.git(b.primary, "checkout", "-qb", "mine") }, ErrBranch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			b.write(b.primary, "other", "other\n")
			b.git(b.primary, "add", ".")
			b.git(b.primary, "commit", "-qm", "other")
			r := b.open()
			w := b.add(r, Options{})
			b.write(w.Path(), "README", "two\n")
			b.write(w.Path(), "new", "new\n")
			commit := b.commit(w)
			test.prepare(b)
			main, readme, status := b.git(b.primary, "rev-parse", "main"), b.read(b.primary, "README"), b.git(b.primary, "status", "--porcelain")
			moved, err := r.Promote(t.Context(), "main", commit, func(context.Context, string) error {
				t.Error("a promotion that is refused is announced")
				return nil
			})
			if !errors.Is(err, test.kind) || moved || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, %v; want %v", moved, err, test.kind)
			}
			if b.git(b.primary, "rev-parse", "main") != main || b.read(b.primary, "README") != readme || b.git(b.primary, "status", "--porcelain") != status {
				t.Error("something has changed")
			}
			if b.git(b.primary, "rev-parse", w.Branch()) != commit {
				t.Error("the branch is lost")
			}
			if err := w.Remove(t.Context(), true); !errors.Is(err, ErrDiverged) {
				t.Errorf("removal of unpromoted work: %v", err)
			}
			if err := w.Remove(t.Context(), false); err != nil || b.git(b.primary, "rev-parse", w.Branch()) != commit {
				t.Error(err)
			}
		})
	}
}

func TestAnnouncementEndsPromotion(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.open()
	w := b.add(r, Options{})
	b.write(w.Path(), "README", "two\n")
	commit := b.commit(w)
	lost := errors.New("claim lost")
	if moved, err := r.Promote(t.Context(), "main", commit, func(context.Context, string) error { return lost }); !errors.Is(err, lost) || moved {
		t.Error(moved, err)
	}
	if contained, err := r.Contains(t.Context(), "main", commit); contained || err != nil {
		t.Error(contained, err)
	}
	if b.git(b.primary, "status", "--porcelain") != "" {
		t.Error("something has changed")
	}
	b.git(b.primary, "merge", "-q", "--ff-only", w.Branch()) // the branch is whole
	if err := w.Remove(t.Context(), true); err != nil {
		t.Error(err)
	}
	b.clean()
}
