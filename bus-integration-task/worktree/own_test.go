package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Folders that other users can write to, or that tasks share with private files, are
// refused. New ones are private.
func TestFoldersOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	r := b.open()
	w := b.add(r, Options{})
	for _, name := range []string{b.state, b.root} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := w.Remove(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o777, 0o770, 0o757} {
		for _, name := range []string{b.state, b.root} {
			if err := os.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Add(t.Context(), Options{Root: b.root}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("root with mode %o: %v", mode, err)
		}
		if _, err := Open(t.Context(), b.primary, Config{Workspace: b.workspace, State: b.state}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("state with mode %o: %v", mode, err)
		}
	}
	shared := filepath.Join(b.dir, "shared")
	r, err := Open(t.Context(), b.primary, Config{Workspace: b.workspace, State: filepath.Join(shared, "state")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Add(t.Context(), Options{Root: shared}); !errors.Is(err, ErrName) {
		t.Errorf("state in the root: %v", err)
	}
}
