package instructions

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// FileName is the name of the canonical project instruction file.
const FileName = "AGENTS.md"

// FindRoot returns the root of the repository workdir is in: its nearest
// ancestor, itself included, with a ".git" that really is one, which is a file
// that begins with "gitdir:" or a directory that holds a HEAD. Agents leave
// empty ".git" directories behind; those are no roots. Without a repository it
// returns workdir.
//
// The answer is absolute and free of symlinks, because that is what a process
// started in workdir sees as its current directory. A workdir that does not
// exist comes back cleaned and absolute.
func FindRoot(workdir string) string {
	physical, err := resolve(workdir)
	if err != nil {
		return physical
	}
	return rootOf(physical)
}

// rootOf is FindRoot for a directory that is absolute and without symlinks.
func rootOf(physical string) string {
	for dir := physical; ; dir = filepath.Dir(dir) {
		if isRepository(dir) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return physical
		}
	}
}

// resolve returns dir absolute and without symlinks; on an error at least
// absolute where that is possible.
func resolve(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir, err
	}
	physical, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return abs, err
	}
	return physical, nil
}

func isRepository(dir string) bool {
	git := filepath.Join(dir, ".git")
	info, err := os.Stat(git)
	switch {
	case err != nil:
		return false
	case info.IsDir():
		_, err := os.Lstat(filepath.Join(git, "HEAD"))
		return err == nil
	case !info.Mode().IsRegular():
		return false
	}
	f, err := os.OpenFile(git, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	const prefix = "gitdir:"
	head := make([]byte, len(prefix))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == prefix
}

// Discover finds the AGENTS.md files that apply to workdir: one at most in each
// directory from [FindRoot] down to workdir, root first. Nothing is executed and
// no file is read yet.
//
// A missing file is no event at all. One that cannot be used is left out with a
// warning in the Chain: what is no regular file, what cannot be opened, and a
// symlink that leads out of the root. A symlink that stays inside is followed.
//
// The error says that workdir is no directory that can be opened.
func Discover(workdir string) (Chain, error) {
	physical, err := resolve(workdir)
	if err != nil {
		return Chain{}, fmt.Errorf("instructions: %w", err)
	}
	info, err := os.Stat(physical)
	if err != nil {
		return Chain{}, fmt.Errorf("instructions: %w", err)
	}
	if !info.IsDir() {
		return Chain{}, fmt.Errorf("instructions: %w", &fs.PathError{Op: "open", Path: physical, Err: syscall.ENOTDIR})
	}
	c := Chain{Root: rootOf(physical), Workdir: physical}
	root, err := os.OpenRoot(c.Root)
	if err != nil {
		return Chain{}, fmt.Errorf("instructions: %w", err)
	}
	defer root.Close()
	for _, dir := range c.dirs() {
		rel := path.Join(dir, FileName)
		f, info, err := openRegular(root, rel)
		if errors.Is(err, fs.ErrNotExist) && !isLink(root, rel) {
			continue
		}
		if err != nil {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s was left out: %s", display(rel), reason(err)))
			continue
		}
		f.Close()
		c.Files = append(c.Files, File{
			Path: filepath.Join(c.Root, filepath.FromSlash(rel)), Rel: rel, Size: info.Size(),
		})
	}
	return c, nil
}

// openRegular opens a regular file for reading. What is a FIFO or a device is
// neither waited for nor touched.
func openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	before, err := root.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	// The file may have been replaced since, so the open must not block and
	// what was opened is looked at again.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func isLink(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// reason returns the cause of err without the path, which the message has.
func reason(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// display returns a path of the repository as it may stand in a line of text.
func display(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}
