package preferences

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// oldStore returns a store with a file of an earlier version.
func oldStore(t *testing.T) store {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	s := store{
		path: filepath.Join(root, "bus", fileName),
		old:  []string{filepath.Join(root, "none", fileName), filepath.Join(root, "busdk", fileName)},
	}
	writeFile(t, s.old[1], `{"values":{"a":"old"}}`)
	return s
}

func wantNoFile(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s exists: %v", path, err)
	}
}

func TestFirstAccessMovesOldFile(t *testing.T) {
	t.Parallel()
	t.Run("reading", func(t *testing.T) {
		t.Parallel()
		s := oldStore(t)
		if got, _, err := s.getString(t.Context(), "a"); got != "old" || err != nil {
			t.Errorf("getString = %q, %v", got, err)
		}
		if got := content(t, s.path); got != `{"values":{"a":"old"}}` {
			t.Errorf("the file is %s", got)
		}
		wantNoFile(t, s.old[1])
	})
	t.Run("writing", func(t *testing.T) {
		t.Parallel()
		s := oldStore(t)
		check(t, s.setString(t.Context(), "b", "new"))
		if got, _, err := s.getString(t.Context(), "a"); got != "old" || err != nil {
			t.Errorf("getString = %q, %v", got, err)
		}
		wantNoFile(t, s.old[1])
	})
}

func TestExistingFileIsNotReplacedByOldOne(t *testing.T) {
	t.Parallel()
	s := oldStore(t)
	writeFile(t, s.path, `{"values":{"a":"new"}}`)
	if got, _, err := s.getString(t.Context(), "a"); got != "new" || err != nil {
		t.Errorf("getString = %q, %v", got, err)
	}
	check(t, s.setString(t.Context(), "a", "newer"))
	if got := content(t, s.old[1]); got != `{"values":{"a":"old"}}` {
		t.Errorf("the old file is %s", got)
	}
}

func TestDanglingLinkIsAnExistingFile(t *testing.T) {
	t.Parallel()
	s := oldStore(t)
	check(t, os.MkdirAll(filepath.Dir(s.path), 0o700))
	check(t, os.Symlink("target", s.path))
	if _, ok, err := s.get(t.Context(), "a"); ok || err != nil {
		t.Errorf("get = %v, %v", ok, err)
	}
	check(t, s.setString(t.Context(), "b", "x"))
	if _, ok, err := s.get(t.Context(), "a"); ok || err != nil {
		t.Errorf("get = %v, %v", ok, err)
	}
	content(t, s.old[1])
}

func TestOldFileThatCannotBeMovedIsRead(t *testing.T) {
	t.Parallel()
	s := oldStore(t)
	check(t, os.MkdirAll(s.path+".lock", 0o700)) // stops the superuser too
	if got, _, err := s.getString(t.Context(), "a"); got != "old" || err != nil {
		t.Errorf("getString = %q, %v", got, err)
	}
	if err := s.setString(t.Context(), "b", "x"); err == nil {
		t.Error("setString succeeded; the old preferences would be lost")
	}
	wantNoFile(t, s.path)
	content(t, s.old[1])
}

func TestWriteFailsIfMoveFails(t *testing.T) {
	t.Parallel()
	s := oldStore(t)
	check(t, os.Remove(s.old[1]))
	check(t, os.Mkdir(s.old[1], 0o700))
	if err := s.setString(t.Context(), "b", "x"); err == nil {
		t.Error("setString succeeded; the old preferences would be lost")
	}
	wantNoFile(t, s.path)
}

// waitContext is a context that calls a function when it is waited for.
type waitContext struct {
	context.Context
	waiting func()
}

func (w waitContext) Done() <-chan struct{} {
	w.waiting()
	return w.Context.Done()
}

func TestFileCreatedWhileWaitingToMoveIsKept(t *testing.T) {
	t.Parallel()
	s := oldStore(t)
	unlock, err := lock(t.Context(), s.path)
	check(t, err)
	begun := make(chan struct{})
	ctx := waitContext{t.Context(), sync.OnceFunc(func() { close(begun) })}
	moved := make(chan error)
	go func() { moved <- s.migrate(ctx) }()
	<-begun
	writeFile(t, s.path, `{"values":{"a":"new"}}`)
	unlock()
	check(t, <-moved)
	if got, _, err := s.getString(t.Context(), "a"); got != "new" || err != nil {
		t.Errorf("getString = %q, %v", got, err)
	}
}

func TestMoveAcrossDevices(t *testing.T) {
	t.Parallel()
	s := oldStore(t)
	check(t, os.Chmod(s.old[1], 0o640))
	check(t, os.MkdirAll(filepath.Dir(s.path), 0o700))
	across := func(string, string) error { return errors.New("invalid cross-device link") }
	check(t, moveFile(s.old[1], s.path, across))
	if got := content(t, s.path); got != `{"values":{"a":"old"}}` {
		t.Errorf("the file is %s", got)
	}
	info, err := os.Stat(s.path)
	check(t, err)
	if got := info.Mode().Perm(); got != 0o640 && runtime.GOOS != "windows" {
		t.Errorf("mode = %o, want 640", got)
	}
	wantNoFile(t, s.old[1])
	if got := files(t, filepath.Dir(s.path)); got != fileName {
		t.Errorf("files = %s", got)
	}
}

func TestMovedLinkKeepsItsTarget(t *testing.T) {
	t.Parallel()
	s := oldStore(t)
	target := filepath.Join(filepath.Dir(filepath.Dir(s.path)), "dotfiles", "prefs.json")
	check(t, os.MkdirAll(filepath.Dir(target), 0o700))
	check(t, os.Rename(s.old[1], target))
	check(t, os.Symlink("../dotfiles/prefs.json", s.old[1]))
	// One level deeper, where the relative link would have another target.
	s.path = filepath.Join(filepath.Dir(s.path), "deeper", fileName)

	check(t, s.setString(t.Context(), "b", "x"))
	if got, _, err := s.getString(t.Context(), "a"); got != "old" || err != nil {
		t.Errorf("getString = %q, %v", got, err)
	}
	if got, err := os.Readlink(s.path); got != target || err != nil {
		t.Errorf("the link points to %q, %v, want %q", got, err, target)
	}
	direct := store{path: target}
	if got, _, err := direct.getString(t.Context(), "b"); got != "x" || err != nil {
		t.Errorf("the target holds %q, %v", got, err)
	}
	wantNoFile(t, s.old[1])
}

func TestConcurrentMigration(t *testing.T) {
	t.Parallel()
	for range 20 {
		s := oldStore(t)
		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() {
				if i%4 == 0 {
					if err := s.setJSON(t.Context(), "n."+string(rune('0'+i)), []byte("1")); err != nil {
						t.Error(err)
					}
				}
				if got, _, err := s.getString(t.Context(), "a"); got != "old" || err != nil {
					t.Errorf("getString = %q, %v", got, err)
				}
			})
		}
		wait.Wait()
		items, err := s.list(t.Context(), "")
		check(t, err)
		if len(items) != 3 {
			t.Fatalf("items = %v, want 3", items)
		}
		wantNoFile(t, s.old[1])
	}
}
