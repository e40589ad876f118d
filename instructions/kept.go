package instructions

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Kept returns the absolute path of the directory of kept files,
// <workdir>/<parent>/sessions. It need not exist.
func (h *Home) Kept() string { return filepath.Join(filepath.Dir(h.path), keptDir) }

// CopyIn copies a kept file, or a tree of them, into the home, readable by the
// user alone. What is neither a regular file nor a directory is left out. It is
// fs.ErrNotExist when nothing of that name was kept.
func (h *Home) CopyIn(kept, name string) error {
	if err := checkName(kept); err != nil {
		return err
	}
	return h.add(name, "copied from the kept "+display(kept), func() error {
		return copyTree(h.base, path.Join(keptDir, kept), h.root, name)
	})
}

func copyTree(from *os.Root, src string, to *os.Root, dst string) error {
	info, err := from.Lstat(src)
	switch {
	case err != nil:
		return err
	case info.Mode().IsRegular():
		return copyFile(from, src, to, dst, info)
	case !info.IsDir():
		return nil
	}
	if err := to.MkdirAll(dst, 0o700); err != nil {
		return err
	}
	entries, err := fs.ReadDir(from.FS(), src)
	for _, entry := range entries {
		err = errors.Join(err, copyTree(from, path.Join(src, entry.Name()), to, path.Join(dst, entry.Name())))
	}
	return err
}

// copyFile keeps the time of last change: CLIs look for their latest session.
func copyFile(from *os.Root, src string, to *os.Root, dst string, info fs.FileInfo) error {
	r, _, err := openRegular(from, src)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := to.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close(), to.Chtimes(dst, time.Time{}, info.ModTime()))
}

// Keep moves a file of the home, or a tree of files, to the kept files. A file
// replaces the one of its name; a tree is merged into the one that is there, so
// runs that end at the same time lose nothing. What is neither a regular file
// nor a directory stays in the home. It is fs.ErrNotExist when the home has
// nothing of that name. From a temporary home nothing is kept.
func (h *Home) Keep(name, kept string) error {
	if err := errors.Join(checkName(name), checkName(kept)); err != nil {
		return err
	}
	if h.w.dryRun || h.temporary() {
		return nil
	}
	if !h.open {
		return fs.ErrClosed
	}
	defer lockWorkdir(h.top)()
	if err := keepTree(h.base, path.Join(h.name, name), path.Join(keptDir, kept)); err != nil || h.hidden {
		return err
	}
	err := ignoreDir(h.base, keptDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was kept
	}
	return err
}

func keepTree(base *os.Root, src, dst string) error {
	info, err := base.Lstat(src)
	switch {
	case err != nil:
		return err
	case info.Mode().IsRegular():
		if err := base.MkdirAll(path.Dir(dst), 0o700); err != nil {
			return err
		}
		return base.Rename(src, dst)
	case !info.IsDir():
		return nil
	}
	entries, err := fs.ReadDir(base.FS(), src)
	for _, entry := range entries {
		err = errors.Join(err, keepTree(base, path.Join(src, entry.Name()), path.Join(dst, entry.Name())))
	}
	return err
}

// FindKept returns the kept regular file that match accepts, given its path
// relative to Kept, and that was changed last; "" when there is none. It reads
// the disk in a dry run too.
func (h *Home) FindKept(match func(rel string) bool) (rel string, err error) {
	root := h.w.root
	if h.open {
		root = h.top
	}
	base, err := root.OpenRoot(h.parent)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer base.Close()
	var newest time.Time
	err = fs.WalkDir(base.FS(), keptDir, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing was kept, or it is just being replaced
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		candidate := strings.TrimPrefix(name, keptDir+"/")
		if !match(candidate) {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil // as above
		}
		if rel == "" || info.ModTime().After(newest) {
			rel, newest = candidate, info.ModTime()
		}
		return nil
	})
	return rel, err
}
