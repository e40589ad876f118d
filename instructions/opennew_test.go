package instructions

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// An os.Root follows links that stay inside. An existing file or link is neither written
// nor truncated when a new file is made.
func TestNewFilesReplaceNothing(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(root.WriteFile("file", []byte("kept"), 0o600), root.Symlink("file", "link"), root.Symlink("none", "dangling")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "link", "dangling"} {
		if f, err := openNew(root, name, 0o600); !errors.Is(err, fs.ErrExist) {
			f.Close()
			t.Errorf("openNew %s: %v", name, err)
		}
		if err := writeNew(root, name, []byte("x"), 0o600); !errors.Is(err, fs.ErrExist) {
			t.Errorf("writeNew %s: %v", name, err)
		}
	}
	if text, err := root.ReadFile("file"); err != nil || string(text) != "kept" {
		t.Errorf("the file is %q, %v", text, err)
	}
	if _, err := root.Lstat("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the target of a link was made: %v", err)
	}
}
