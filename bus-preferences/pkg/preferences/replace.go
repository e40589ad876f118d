package preferences

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceFile replaces or creates the file at path, which is no symbolic link,
// as a whole. The caller holds the lock of path.
func replaceFile(path string, data []byte) error {
	like, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		like, err = nil, nil
	}
	temp := tempName(path)
	if err == nil {
		err = writeTemp(temp, data, like)
	}
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

// notWritten says that the file at path is as it was. The cause alone would name
// a file that the user does not know.
func notWritten(path string, err error) error {
	return fmt.Errorf("%s was not written: %w", path, err)
}

// tempName returns the one temporary file that writers of path use. The lock
// makes one name enough, and so a killed writer leaves no more than one behind.
func tempName(path string) string { return path + ".tmp" }

// writeTemp creates temp with data, safe on disk, with the mode and owner of
// like; when that is nil, for the owner of the directory alone.
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
