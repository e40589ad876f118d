package worktree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadBase(t *testing.T) {
	t.Parallel()
	b := newBench(t, "sha1")
	b.write(b.primary, "plan", "one\n")
	b.write(b.primary, "large", strings.Repeat("x", 100))
	if err := os.Symlink("plan", filepath.Join(b.primary, "link")); err != nil {
		t.Fatal(err)
	}
	b.git(b.primary, "add", ".")
	b.git(b.primary, "commit", "-qm", "plan")
	w := b.add(b.open(), Options{})
	b.write(w.Path(), "plan", "two\n")
	if text, err := w.ReadBase(t.Context(), "plan", 50); text != "one\n" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	for name, want := range map[string]error{"large": ErrTooLarge, "link": fs.ErrNotExist, "none": fs.ErrNotExist, "*": fs.ErrNotExist} {
		if text, err := w.ReadBase(t.Context(), name, 50); !errors.Is(err, want) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// The state changes with files, commits and branches, and is the same again afterwards.
func TestStateOfThePrimary(t *testing.T) {
	t.Parallel()
	b := newBench(t, "sha1")
	r := b.open()
	state := func() string {
		t.Helper()
		s, err := r.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := state()
	b.write(b.primary, "new", "1\n")
	if state() == before {
		t.Error("a new file does not count")
	}
	if err := os.Remove(filepath.Join(b.primary, "new")); err != nil {
		t.Fatal(err)
	}
	if state() != before {
		t.Error("the state is not that of before")
	}
	b.git(b.primary, "checkout", "-qb", "other")
	if state() == before {
		t.Error("the branch does not count")
	}
	b.git(b.primary, "checkout", "-q", "main")
	b.git(b.primary, "commit", "-q", "--allow-empty", "-m", "mine")
	if state() == before {
		t.Error("a commit does not count")
	}
}
