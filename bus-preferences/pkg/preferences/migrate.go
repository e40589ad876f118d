package preferences

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// findOld returns the first file of an earlier version that exists, or "".
func (s store) findOld() string {
	for _, old := range s.old {
		if _, err := os.Lstat(old); err == nil && old != s.path {
			return old
		}
	}
	return ""
}

// migrate moves the file of an earlier version to its place, if there is one
// and the place is free. Any number of processes may try at once.
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

// exists reports whether something is at path, be it a link to nowhere.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// moveFile moves the file at from to the free path to: by rename where that is
// possible, else as a copy. At every moment one of the two is whole. The caller
// holds the lock of to.
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
	temp := tempName(to)
	if err := writeTemp(temp, data, info); err != nil {
		os.Remove(temp)
		return err
	}
	if err := os.Rename(temp, to); err != nil {
		os.Remove(temp)
		return err
	}
	if err := syncDir(filepath.Dir(to)); err != nil {
		return err
	}
	// An old file that cannot be removed does no harm: the new one wins.
	os.Remove(from)
	return nil
}

// moveLink moves a symbolic link. A relative one would lead elsewhere from its
// new place, so the new one is absolute.
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
