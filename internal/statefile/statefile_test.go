package statefile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func newDir(t *testing.T) *Dir {
	t.Helper()
	d, err := OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func TestHeldDirIsNotItsPath(t *testing.T) {
	t.Parallel()
	above := newDir(t)
	d, err := above.MakeDir("state")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	foreign := t.TempDir()
	if err := errors.Join(above.Rename("state", "moved"), os.Symlink(foreign, d.Path())); err != nil {
		t.Fatal(err)
	}
	if d.Held(d.Path()) || !d.Held(filepath.Join(above.Path(), "moved")) {
		t.Error("the directory is where the link is")
	}
	l, err := d.Lock(t.Context(), "lock")
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.Append("log")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := errors.Join(d.Replace("file", []byte("x")), d.Mkdir("dir")); err != nil {
		t.Fatal(err)
	}
	l.Remove()
	entries, more, err := d.Entries(10)
	if err != nil || more || len(entries) != 3 {
		t.Errorf("entries %v, %t, %v", entries, more, err)
	}
	if entries, more, err := d.Entries(2); err != nil || !more || len(entries) != 2 {
		t.Errorf("two entries %v, %t, %v", entries, more, err)
	}
	if entries, _ := os.ReadDir(foreign); len(entries) > 0 {
		t.Errorf("the link's target has %v", entries)
	}
	if _, err := above.Dir("state"); !errors.Is(err, ErrNotRegular) || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("the link opens as a directory: %v", err)
	}
	for _, name := range []string{"", ".", "..", "../moved", "a/b", "a\x00"} {
		if err := d.Replace(name, nil); err == nil {
			t.Errorf("%q is taken for a name", name)
		}
	}
}

func TestLockIsExclusiveAlsoWhenRemoved(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	var inside atomic.Int32
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			l, err := d.Lock(t.Context(), "lock")
			if err != nil {
				t.Error(err)
				return
			}
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d have the lock at once", n)
			}
			inside.Add(-1)
			if i%2 == 0 {
				l.Remove()
			} else {
				l.Release()
			}
		})
	}
	wg.Wait()
}

func TestLockIsWaitedForWithinABound(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	held, err := d.Lock(t.Context(), "lock")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		_, err := d.Lock(t.Context(), "lock")
		if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), filepath.Join(d.Path(), "lock")) || !strings.Contains(err.Error(), "try again") {
			t.Errorf("error %v", err)
		}
		if waited := time.Since(begun); waited < LockWait || waited > 2*LockWait {
			t.Errorf("waited %v", waited)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		time.AfterFunc(time.Second, func() { cancel(stopped) })
		begun = time.Now()
		if _, err := d.Lock(ctx, "lock"); !errors.Is(err, stopped) || time.Since(begun) != time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(d.Path(), "probed")
		probe, err := TryLockPath(path)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(2*lockPoll, probe.Release) // as Locked does
		lock, err := TryLockPath(path)
		if err != nil {
			t.Fatalf("while Locked looks: %v", err)
		}
		lock.Release()
	})
	if _, err := TryLockPath(filepath.Join(d.Path(), "lock")); !errors.Is(err, ErrLocked) || !Locked(filepath.Join(d.Path(), "lock")) {
		t.Errorf("try: %v", err)
	}
}

func TestReadLinked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	if err := errors.Join(os.WriteFile(file, []byte("text"), 0o600), os.Symlink(file, link), unix.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path  string
		limit int64
		want  error
	}{
		{file, 4, nil}, {link, 4, nil}, {link, 3, ErrTooLarge}, {fifo, 4, ErrNotRegular}, {dir, 4, ErrNotRegular},
		{"/dev/zero", 4, ErrNotRegular}, {filepath.Join(dir, "missing"), 4, fs.ErrNotExist},
	} {
		if text, err := ReadLinked(c.path, c.limit); !errors.Is(err, c.want) || err == nil && string(text) != "text" {
			t.Errorf("%s up to %d bytes: %q, %v; want %v", c.path, c.limit, text, err, c.want)
		}
	}
}
