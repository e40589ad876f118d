//go:build darwin || linux

package preferences

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func init() {
	jobs["small"] = onUserStore(smallFiles)
	jobs["read only"] = onUserStore(readOnlyDirectory)
}

// onUserStore returns a function that runs job on the user's file and prints its
// error.
func onUserStore(job func(store) error) func() {
	return func() {
		if err := job(userStore()); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

func runJob(t *testing.T, s store, job string) {
	t.Helper()
	if out, err := child(t, s, job).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// smallFiles limits the size of files, so that a write fails in the middle.
func smallFiles(s store) error {
	if err := s.setString(context.Background(), "a", "old"); err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: 4096, Max: 4096}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := wantWriteError(s, syscall.EFBIG); err != nil {
		return err
	}
	return s.setString(context.Background(), "c", "small")
}

func TestFileSizeLimit(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	runJob(t, s, "small")
	if value, _, err := s.getString(t.Context(), "c"); value != "small" || err != nil {
		t.Errorf("the next write: %q, %v", value, err)
	}
}

// readOnlyDirectory drops the rights of the superuser, who may write anywhere.
func readOnlyDirectory(s store) error {
	if os.Geteuid() == 0 {
		const unprivileged = 65534
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(unprivileged), syscall.Setuid(unprivileged)); err != nil {
			return err
		}
	}
	if err := wantWriteError(s, syscall.EACCES); err != nil {
		return err
	}
	// Reading and writing without a change still succeed.
	return s.unset(context.Background(), "none")
}

func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	check(t, s.setString(t.Context(), "a", "old"))
	dir := filepath.Dir(s.path)
	// Writing would create the lock file.
	check(t, os.Remove(s.path+".lock"))
	check(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	if os.Geteuid() == 0 {
		check(t, os.Chmod(s.path, 0o644))
		temporary := filepath.Clean(cmp.Or(os.Getenv("GOTMPDIR"), os.TempDir())) // as t.TempDir
		for above := filepath.Dir(dir); strings.HasPrefix(above, temporary+"/"); above = filepath.Dir(above) {
			check(t, os.Chmod(above, 0o755))
		}
	}
	runJob(t, s, "read only")
	if got := files(t, dir); got != fileName {
		t.Errorf("files = %s", got)
	}
}
