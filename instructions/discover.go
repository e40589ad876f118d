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

	"github.com/busdk/bus-agent/internal/unix"
)

// FileName is the name of the canonical project instruction file.
const FileName = "AGENTS.md"

// FindRoot returns the root of the repository of workdir: its nearest ancestor, itself
// included, with a ".git" that is a file beginning with "gitdir:" or a directory with
// a HEAD. Agents leave empty ".git" directories behind, which do not count. Without a
// repository it returns workdir.
//
// The path is absolute and without symlinks, as the current directory of a process in
// workdir is. A workdir that does not exist is returned cleaned and absolute.
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

// resolve returns dir absolute and without symlinks; on an error at least absolute if
// possible.
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
	f, err := os.OpenFile(git, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	const prefix = "gitdir:"
	head := make([]byte, len(prefix))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == prefix
}

// Discover finds the AGENTS.md files that apply to workdir: at most one in each
// directory from [FindRoot] down to workdir, root first. It executes nothing and reads
// no file.
//
// A missing file is normal. A file that cannot be used is left out with a warning in
// the Chain: one that is not regular or cannot be opened, and a symlink that leads out
// of the root. A symlink that stays inside is followed.
//
// The error means that workdir is not a directory that can be opened.
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

// openRegular opens a regular file for reading. It does not wait for a FIFO or touch a
// device.
func openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	before, err := root.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	// The file may have been replaced since, so the open must not block and its
	// result is checked again.
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
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

// reason returns the cause of err without the path, which the message has already.
func reason(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// display returns a path of the repository in printable form.
func display(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Sprintf("%q", name)
	}
	return name
}
