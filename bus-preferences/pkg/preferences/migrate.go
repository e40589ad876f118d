package preferences

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// findOld returns the first existing file of an earlier version, or "".
func (s store) findOld() string {
	for _, old := range s.old {
		if _, err := os.Lstat(old); err == nil && old != s.path {
			return old
		}
	}
	return ""
}

// migrate moves the file of an earlier version to s.path, if there is one and
// s.path does not exist. Several processes may call it at once.
func (s store) migrate(ctx context.Context) error {
	if exists(s.path) || s.findOld() == "" {
		return nil
	}
	unlock, err := lock(ctx, s.path)
	if err != nil {
		return err
	}
	defer unlock()
	old := s.findOld()
	if exists(s.path) || old == "" {
		return nil // another process was first
	}
	if err := moveFile(old, s.path, os.Rename); err != nil {
		return fmt.Errorf("cannot move the preferences of an earlier version: %w", err)
	}
	return nil
}

// exists reports whether there is a file at path, which may be a dangling link.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// moveFile moves the file at from to the path to, which does not exist. It renames
// the file or, if that fails, copies it. One of the two is complete at any time. The
// caller holds the lock of to.
func moveFile(from, to string, rename func(from, to string) error) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return moveLink(from, to)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", from)
	}
	if err := rename(from, to); err == nil {
		return syncDir(filepath.Dir(to))
	}

	data, err := readFile(from)
	if err != nil {
		return err
	}
	if err := replaceFile(to, data, info); err != nil {
		return err
	}
	os.Remove(from) // an old file next to a new one is ignored
	return nil
}

// moveLink moves a symbolic link and makes it absolute, because a relative one would
// have another target in the new location.
func moveLink(from, to string) error {
	target, err := followLinks(from)
	if err != nil {
		return err
	}
	if target, err = filepath.Abs(target); err != nil {
		return err
	}
	if err := os.Symlink(target, to); err != nil {
		return err
	}
	os.Remove(from)
	return nil
}
