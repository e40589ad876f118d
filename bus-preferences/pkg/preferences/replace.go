package preferences

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceFile atomically replaces or creates the file at path, which is not a
// symbolic link, with the mode and owner of like. If like is nil, only the owner of
// the directory has access. The caller holds the lock of path.
func replaceFile(path string, data []byte, like fs.FileInfo) error {
	temp := tempName(path)
	err := writeTemp(temp, data, like)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		os.Remove(temp)
		return notWritten(path, err)
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s was written but may be lost in a power failure: %w", path, err)
	}
	return nil
}

// notWritten returns the error of a failed write. The cause alone would name a file
// unknown to the user.
func notWritten(path string, err error) error {
	return fmt.Errorf("%s was not written: %w", path, err)
}

// tempName returns the path of the temporary file of the writers of path. One is
// enough because of the lock, and killed writers leave at most one.
func tempName(path string) string { return path + ".tmp" }

// writeTemp creates temp with data, and the mode and owner of like as in
// replaceFile, and flushes it to disk.
func writeTemp(temp string, data []byte, like fs.FileInfo) error {
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if like == nil {
		ownAsDir(f)
	} else {
		setOwner(f, like)
		if err := f.Chmod(like.Mode().Perm()); err != nil {
			return err
		}
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

// ownAsDir gives f the owner of its directory.
func ownAsDir(f *os.File) {
	if info, err := os.Stat(filepath.Dir(f.Name())); err == nil {
		setOwner(f, info)
	}
}
