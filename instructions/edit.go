package instructions

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/busdk/bus-agent/internal/tree"
	"github.com/busdk/bus-agent/internal/unix"
)

// editLimit is the size limit of a file that is edited, in bytes. It bounds the time that
// a hostile file takes.
const editLimit = 1 << 20

// errChanged makes edit try again: another program wrote the file.
var errChanged = errors.New("the file changes all the time")

// A change computes the new content of a file from the old. A nil result removes the
// file, the same content does not change it. Of a missing file, old is nil, and
// newDirs is the number of directories above it that will have been made.
type change func(old []byte, newDirs int) (data []byte, err error)

// edit changes a file below the workdir atomically: others see the old content or the
// new, and no concurrent write is lost. It reports whether anything changed.
func edit(budget *tree.Budget, root *os.Root, name string, change change, dryRun bool) (changed bool, err error) {
	if err := checkName(name); err != nil {
		return false, err
	}
	if !dryRun {
		defer lockWorkdir(budget, root)()
	}
	for range 10 {
		changed, err = tryEdit(root, name, change, dryRun)
		if !errors.Is(err, errChanged) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return changed, err
}

func tryEdit(root *os.Root, name string, change change, dryRun bool) (changed bool, err error) {
	before, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return create(root, name, change, dryRun)
	}
	if err != nil {
		return false, err
	}
	if !before.Mode().IsRegular() {
		return false, &fs.PathError{Op: "edit", Path: name, Err: ErrNotRegular}
	}
	old, err := readFile(root, name, editLimit)
	if err != nil {
		return false, err
	}
	data, err := change(old, 0)
	if err != nil || data != nil && string(data) == string(old) {
		return false, err
	}
	if dryRun {
		return true, nil
	}
	if data == nil {
		if !unchanged(root, name, before) {
			return false, errChanged
		}
		return true, root.Remove(name)
	}
	return true, replace(root, name, before, data)
}

func create(root *os.Root, name string, change change, dryRun bool) (changed bool, err error) {
	dir := path.Dir(name)
	missing := missingDirs(root, dir)
	data, err := change(nil, missing)
	if err != nil || data == nil {
		return false, err
	}
	if dryRun {
		return true, nil
	}
	made, err := makeDirs(root, dir)
	if err == nil && len(made) != missing {
		err = errChanged // the content says how many were made
	}
	if err == nil {
		err = writeNew(root, name, data, 0o644)
	}
	if err != nil {
		removeDirs(root, made)
		return false, err
	}
	return true, nil
}

// missingDirs returns the number of directories that makeDirs would make.
func missingDirs(root *os.Root, dir string) (n int) {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := root.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		n++
	}
	return n
}

// replace replaces the file that info describes by data, keeping its mode and owner.
func replace(root *os.Root, name string, info fs.FileInfo, data []byte) (err error) {
	suffix, err := randomName()
	if err != nil {
		return err
	}
	temp := path.Join(path.Dir(name), ".bus-agent-"+suffix)
	defer func() {
		if err != nil {
			root.Remove(temp)
		}
	}()
	if err := writeNew(root, temp, data, info.Mode().Perm()); err != nil {
		return err
	}
	if owner, ok := info.Sys().(*unix.SysStat); ok && os.Geteuid() == 0 {
		if err := root.Lchown(temp, int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	if !unchanged(root, name, info) {
		return errChanged
	}
	return root.Rename(temp, name)
}

func unchanged(root *os.Root, name string, info fs.FileInfo) bool {
	now, err := root.Lstat(name)
	return err == nil && os.SameFile(now, info) && now.Size() == info.Size() && now.ModTime().Equal(info.ModTime())
}

// removeOld removes the old file before a new one is made. An os.Root follows a link
// that stays inside, so a file is never opened to be truncated.
func removeOld(root *os.Root, name string) error {
	if err := root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// openNew makes a file that does not exist. Anything of its name is an error, also a
// link, which an agent can make after removeOld.
func openNew(root *os.Root, name string, perm fs.FileMode) (*os.File, error) {
	return root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
}

// writeNew writes a file that does not exist.
func writeNew(root *os.Root, name string, data []byte, perm fs.FileMode) error {
	f, err := openNew(root, name, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Chmod(perm), f.Close()); err != nil {
		root.Remove(name)
		return err
	}
	return nil
}

// removeMade removes up to n empty directories from the one of name upwards.
func removeMade(root *os.Root, name string, n int) {
	var dirs []string
	for dir := path.Dir(name); n > 0 && dir != "."; n, dir = n-1, path.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
	}
	removeDirs(root, dirs)
}
