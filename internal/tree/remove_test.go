package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deep makes a chain of folders below dir with a file in the last of them.
func deep(t testing.TB, dir string, depth int) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(err)
	for range depth {
		check(unix.Mkdirat(fd, "d", 0o700))
		next, err := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		check(err)
		unix.Close(fd)
		fd = next
	}
	file, err := unix.Openat(fd, "file", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	check(err)
	unix.Close(file)
	unix.Close(fd)
}

// hostile are things that an agent can leave in a folder.
var hostile = map[string]func(t *testing.T, dir string){
	"a deep tree": func(t *testing.T, dir string) { deep(t, dir, 5000) },
	"several deep trees": func(t *testing.T, dir string) {
		for i := range 5 {
			sub := filepath.Join(dir, fmt.Sprintf("%s%d", deepName, i))
			if err := os.Mkdir(sub, 0o700); err != nil {
				t.Fatal(err)
			}
			deep(t, sub, 300)
		}
	},
	"many files": func(t *testing.T, dir string) {
		for i := range 5000 {
			write(t, filepath.Join(dir, fmt.Sprint(i)))
		}
	},
	"a pipe": func(t *testing.T, dir string) {
		if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
	},
	"a socket": func(t *testing.T, dir string) {
		t.Chdir(dir) // the path of a socket is short
		l, err := net.Listen("unix", "socket")
		if err != nil {
			t.Fatal(err)
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		l.Close()
	},
	"a sparse file": func(t *testing.T, dir string) {
		name := filepath.Join(dir, "sparse")
		write(t, name)
		if err := os.Truncate(name, 1<<40); err != nil {
			t.Fatal(err)
		}
	},
	"folders without rights": func(t *testing.T, dir string) {
		for _, mode := range []fs.FileMode{0, 0o100, 0o300, 0o400, 0o500} {
			sub := filepath.Join(dir, mode.String())
			if err := os.MkdirAll(filepath.Join(sub, "in/it"), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(sub, "in/it/file"))
			for _, name := range []string{sub + "/in/it", sub + "/in", sub} {
				if err := os.Chmod(name, mode); err != nil {
					t.Fatal(err)
				}
			}
		}
	},
	"odd names": func(t *testing.T, dir string) {
		for _, name := range []string{"a\nb", "\xff", "-rf", " ", "\x1b[2J", "*"} {
			write(t, filepath.Join(dir, name))
		}
	},
}

func write(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// place makes a folder "top" for what is left, with links to what is outside of it,
// and returns the folder it is in.
func place(t *testing.T, leave func(*testing.T, string)) (root *os.Root, outside string) {
	t.Helper()
	base := t.TempDir()
	top, outside := filepath.Join(base, "top"), filepath.Join(base, "outside")
	for _, dir := range []string{top, outside} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(outside, "file"))
	write(t, filepath.Join(top, "last"))
	for name, target := range map[string]string{"root": "/", "proc": "/proc/self", "out": outside, "up": "..", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	leave(t, top)
	root, err := os.OpenRoot(base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, outside
}

// Whatever is left is removed, and nothing it links to.
func TestRemove(t *testing.T) {
	for name, leave := range hostile {
		t.Run(name, func(t *testing.T) {
			root, outside := place(t, leave)
			if err := Remove(NewBudget(t.Context(), Limits{}), root, "top", "last"); err != nil {
				t.Error(err)
			}
			if _, err := root.Lstat("top"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is left: %v", err)
			}
			if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
				t.Errorf("what it links to is gone: %v", err)
			}
		})
	}
}

// A directory in the place of the last file is removed too.
func TestRemoveLast(t *testing.T) {
	t.Parallel()
	root, _ := place(t, func(t *testing.T, top string) {
		if err := errors.Join(os.Remove(filepath.Join(top, "last")), os.MkdirAll(filepath.Join(top, "last", "x"), 0o700)); err != nil {
			t.Fatal(err)
		}
	})
	if err := Remove(NewBudget(t.Context(), Default), root, "top", "last"); err != nil {
		t.Errorf("a directory in the place of the last file: %v", err)
	}
	if _, err := root.Lstat("top"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it stays: %v", err)
	}
}

// Depth costs as much as width: every entry is met a bounded number of times.
func TestRemoveIsLinear(t *testing.T) {
	t.Parallel()
	met := func(depth int) int64 {
		root, _ := place(t, func(t *testing.T, dir string) { deep(t, dir, depth) })
		b := NewBudget(t.Context(), Limits{})
		if err := Remove(b, root, "top", ""); err != nil {
			t.Fatal(err)
		}
		return b.entries.Load()
	}
	if few, many := met(500), met(4000); many > 10*few {
		t.Errorf("%d entries met at depth 500, %d at depth 4000", few, many)
	}
}

// Over the budget the rest is left, with what proves whose it is, and further
// steps remove it.
func TestRemoveInSteps(t *testing.T) {
	t.Parallel()
	root, _ := place(t, func(t *testing.T, dir string) { deep(t, dir, 1000) })
	for step := 1; ; step++ {
		err := Remove(NewBudget(t.Context(), Limits{Entries: 200}), root, "top", "last")
		if err == nil {
			if step < 3 {
				t.Errorf("it took %d steps", step)
			}
			break
		}
		if !errors.Is(err, ErrOver) || step > 100 {
			t.Fatalf("step %d: %v", step, err)
		}
		if _, err := root.Lstat("top/last"); err != nil {
			t.Fatal(err)
		}
	}
}

// Nothing is done when the time is over.
func TestRemoveTooLate(t *testing.T) {
	t.Parallel()
	root, _ := place(t, func(*testing.T, string) {})
	over, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	canceled, stop := context.WithCancelCause(t.Context())
	stop(errors.New("interrupt"))
	for want, ctx := range map[string]context.Context{"it takes too long": over, "stopped: interrupt": canceled} {
		if err := Remove(NewBudget(ctx, Limits{}), root, "top", ""); !errors.Is(err, ErrOver) || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := root.Lstat("top/loop"); err != nil {
		t.Error(err)
	}
}

// Exceptions and what they are in stay.
func TestRemoveExcept(t *testing.T) {
	t.Parallel()
	root, _ := place(t, func(t *testing.T, dir string) {
		if err := os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "a/b/keep"))
		write(t, filepath.Join(dir, "a/b/c/gone"))
	})
	if err := Remove(NewBudget(t.Context(), Limits{}), root, "top", "last", "a/b/keep"); err != nil {
		t.Error(err)
	}
	var left []string
	fs.WalkDir(root.FS(), "top", func(name string, _ fs.DirEntry, err error) error {
		left = append(left, name)
		return err
	})
	if want := "[top top/a top/a/b top/a/b/keep]"; fmt.Sprint(left) != want {
		t.Errorf("left is %v, want %s", left, want)
	}
}

func BenchmarkRemove(b *testing.B) {
	for _, depth := range []int{500, 4000} {
		b.Run(fmt.Sprint(depth), func(b *testing.B) {
			root, err := os.OpenRoot(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			defer root.Close()
			for b.Loop() {
				b.StopTimer()
				root.Mkdir("top", 0o700)
				deep(b, filepath.Join(root.Name(), "top"), depth)
				b.StartTimer()
				if err := Remove(NewBudget(b.Context(), Limits{}), root, "top", ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
