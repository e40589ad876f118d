package preferences

import (
	"errors"
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
	if err != nil {
		return err
	}
	temp := tempName(path)
	if err := writeTemp(temp, data, like); err != nil {
		os.Remove(temp)
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		os.Remove(temp)
		return err
	}
	return syncDir(filepath.Dir(path))
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
