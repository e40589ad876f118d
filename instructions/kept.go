package instructions

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/busdk/bus-agent/internal/tree"
)

// CopyIn copies a kept file, or a tree of them, into the home, readable by the user
// alone. Anything but regular files and directories is left out. The error is
// fs.ErrNotExist if nothing of that name was kept.
func (h *Home) CopyIn(kept, name string) error {
	if err := checkName(kept); err != nil {
		return err
	}
	return h.add(name, "copied from the kept "+display(kept), func() error {
		return copyTree(h.w.bounds(), h.base, path.Join(keptDir, kept), h.root, name)
	})
}

func copyTree(b *tree.Budget, from *os.Root, src string, to *os.Root, dst string) error {
	info, err := from.Lstat(src)
	switch {
	case err != nil:
		return err
	case info.Mode().IsRegular():
		return copyFile(b, from, src, to, dst, info)
	case !info.IsDir():
		return nil
	}
	if err := to.MkdirAll(dst, 0o700); err != nil {
		return err
	}
	skipped, err := tree.Files(b, from, src, func(in *os.Root, name, rel string) error {
		info, err := in.Lstat(name)
		if err != nil {
			return err
		}
		if err := to.MkdirAll(path.Join(dst, path.Dir(rel)), 0o700); err != nil {
			return err
		}
		return copyFile(b, in, name, to, path.Join(dst, rel), info)
	})
	return errors.Join(skipped, err)
}

// copyFile keeps the modification time: CLIs search for their latest session by it.
func copyFile(b *tree.Budget, from *os.Root, src string, to *os.Root, dst string, info fs.FileInfo) error {
	if err := b.Take(info.Size()); err != nil {
		return fmt.Errorf("%q cannot be copied: %w", src, err)
	}
	r, _, err := openRegular(from, src)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := removeOld(to, dst); err != nil {
		return err
	}
	w, err := openNew(to, dst, 0o600)
	if err != nil {
		return err
	}
	const piece = 16 << 20
	for left := info.Size(); left > 0 && err == nil; left -= piece {
		if _, err = io.CopyN(w, r, min(left, piece)); err == nil {
			err = b.Spent()
		}
	}
	if errors.Is(err, io.EOF) { // it has become shorter
		err = nil
	}
	return errors.Join(err, w.Close(), to.Chtimes(dst, time.Time{}, info.ModTime()))
}

// Keep moves a file of the home, or a tree of files, to the kept files. A file
// replaces the one of its name; a tree is merged into the existing one, so runs that
// end at the same time lose nothing. Anything but regular files and directories stays
// in the home, and so do files that are too deep or too large for a session, which is
// an error. The error is fs.ErrNotExist if the home has nothing of that name. Nothing
// is kept from a temporary home.
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
	defer lockWorkdir(h.w.bounds(), h.top)()
	skipped, err := keepTree(h.w.bounds(), h.base, path.Join(h.name, name), path.Join(keptDir, kept))
	if err = errors.Join(skipped, err); err != nil || h.hidden {
		return err
	}
	err = ignoreDir(h.base, keptDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was kept
	}
	return err
}

// keepTree moves a file or a tree below base. Files that are too deep or too large for
// a session, or unreadable, stay; skipped reports them.
func keepTree(b *tree.Budget, base *os.Root, src, dst string) (skipped, err error) {
	move := func(info fs.FileInfo, src, dst string) error {
		if !b.Fits(info.Size()) {
			if skipped == nil {
				skipped = fmt.Errorf("the file %q is left out: it has %d bytes", path.Base(src), info.Size())
			}
			return nil
		}
		err := rename(base, src, dst)
		if !errors.Is(err, fs.ErrPermission) {
			return err
		}
		// An agent can make folders read-only.
		_ = base.Chmod(path.Dir(src), 0o700)
		for dir := path.Dir(dst); dir != "."; dir = path.Dir(dir) {
			_ = base.Chmod(dir, 0o700)
		}
		if err = rename(base, src, dst); errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w: %w", errRights, err)
		}
		return err
	}
	info, err := base.Lstat(src)
	switch {
	case err != nil:
		return nil, err
	case info.Mode().IsRegular():
		return skipped, move(info, src, dst)
	case !info.IsDir():
		return nil, nil
	}
	var failed error
	deep, err := tree.Files(b, base, src, func(in *os.Root, name, rel string) error {
		info, err := in.Lstat(name)
		if err == nil {
			err = move(info, path.Join(src, rel), path.Join(dst, rel))
		}
		failed = worse(failed, err)
		return nil
	})
	if skipped == nil {
		skipped = deep
	}
	return skipped, errors.Join(failed, err)
}

// rename makes the folders of dst.
func rename(root *os.Root, src, dst string) error {
	if err := root.MkdirAll(path.Dir(dst), 0o700); err != nil {
		return err
	}
	return root.Rename(src, dst)
}

// FindKept returns the kept regular file that match accepts, given its path relative
// to Kept, and that was changed last; "" if there is none. It reads the disk in a dry
// run too.
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
	skipped, err := tree.Files(h.w.bounds(), base, keptDir, func(in *os.Root, name, candidate string) error {
		if !match(candidate) {
			return nil
		}
		info, err := in.Lstat(name)
		if err != nil {
			return nil // it is just being replaced
		}
		if rel == "" || info.ModTime().After(newest) {
			rel, newest = candidate, info.ModTime()
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // nothing was kept
	}
	if rel == "" {
		err = errors.Join(err, skipped)
	}
	return rel, err
}

// Glob returns the paths in the home that match a pattern, element by element as in
// path.Match, in order; none in a dry run. It follows no links.
func (h *Home) Glob(pattern string) ([]string, error) {
	if !h.open {
		return nil, nil
	}
	return tree.Glob(h.w.bounds(), h.root, pattern)
}

// Open opens a regular file of the home for reading. Anything else is [ErrNotRegular]
// and is not waited for. The caller closes the file. The files that can be opened are
// bounded as those of [Home.Glob] are.
func (h *Home) Open(name string) (*os.File, error) {
	if err := h.check(name); err != nil {
		return nil, err
	}
	if err := h.w.bounds().Entry(); err != nil {
		return nil, err
	}
	f, _, err := openRegular(h.root, name)
	return f, err
}

// RemoveFile removes a file or an empty directory of the home.
func (h *Home) RemoveFile(name string) error {
	if err := h.check(name); err != nil {
		return err
	}
	return h.root.Remove(name)
}

// Rename renames a file of the home. It replaces a file that has the new name.
func (h *Home) Rename(name, to string) error {
	if err := errors.Join(h.check(name), checkName(to)); err != nil {
		return err
	}
	return h.root.Rename(name, to)
}

// check returns an error unless name can be a file of the home and the home exists.
func (h *Home) check(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if !h.open {
		return fs.ErrClosed
	}
	return nil
}
