package statefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/internal/unix"
)

// A Dir is a directory held by its descriptor. Its methods take the names of
// entries, without slashes, and may be called concurrently. Close releases it.
type Dir struct {
	file  *os.File
	stat  os.FileInfo
	named string
}

// OpenDir opens the directory at path, which the user has named: links on the way
// are followed.
func OpenDir(path string) (*Dir, error) { return hold(unix.AT_FDCWD, path, path, 0) }

// MakeDir is OpenDir for a directory that is made, for the user alone, where there
// is none.
func MakeDir(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	return OpenDir(path)
}

func hold(at int, name, path string, flags int) (*Dir, error) {
	fd, err := openAt(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK|flags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	d := &Dir{file: os.NewFile(uintptr(fd), path), named: path}
	if d.stat, err = d.file.Stat(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func openAt(at int, name string, flags int, mode uint32) (fd int, err error) {
	for {
		if fd, err = unix.Openat(at, name, flags|unix.O_CLOEXEC, mode); err != unix.EINTR {
			return fd, err
		}
	}
}

// Path returns the path that the directory was opened by, or was given by Named.
func (d *Dir) Path() string { return d.named }

// Named sets the path of a directory that its owner has renamed, which errors and
// files have from then on. It must not be called while other methods are.
func (d *Dir) Named(path string) { d.named = path }

// Close releases the directory. A nil Dir has nothing to release.
func (d *Dir) Close() {
	if d != nil {
		d.file.Close()
	}
}

func (d *Dir) fd() int { return int(d.file.Fd()) }

func (d *Dir) path(name string) string { return filepath.Join(d.Path(), name) }

// check refuses what is not the name of one entry.
func (d *Dir) check(op, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return &fs.PathError{Op: op, Path: d.path(name), Err: errors.New("not the name of one entry")}
	}
	return nil
}

// Held reports whether path still leads to this directory, and not to a link or
// to what has taken its place.
func (d *Dir) Held(path string) bool {
	now, err := os.Lstat(path)
	return err == nil && os.SameFile(now, d.stat)
}

// Dir opens the directory with a name, which must not be a link.
func (d *Dir) Dir(name string) (*Dir, error) {
	if err := d.check("open", name); err != nil {
		return nil, err
	}
	below, err := hold(d.fd(), name, d.path(name), unix.O_NOFOLLOW)
	return below, d.explain(name, fs.ModeDir, err)
}

// MakeDir is Dir for a directory that is made, for the user alone, where there is
// none.
func (d *Dir) MakeDir(name string) (*Dir, error) {
	if err := d.Mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return d.Dir(name)
}

// Mkdir makes a directory for the user alone. The error is fs.ErrExist where
// something has its name.
func (d *Dir) Mkdir(name string) error {
	return d.at("mkdir", name, func(fd int) error { return unix.Mkdirat(fd, name, 0o700) })
}

// Rename gives an entry another name, in place of what has that name.
func (d *Dir) Rename(from, to string) error { return d.Move(from, d, to) }

// Move is Rename into another directory of the same file system.
func (d *Dir) Move(from string, into *Dir, to string) error {
	if err := d.check("rename", to); err != nil {
		return err
	}
	return d.at("rename", from, func(fd int) error { return unix.Renameat(fd, from, into.fd(), to) })
}

// Link gives a file another name. The error is fs.ErrExist where something has that
// name.
func (d *Dir) Link(from, to string) error {
	if err := d.check("link", to); err != nil {
		return err
	}
	return d.at("link", from, func(fd int) error { return unix.Linkat(fd, from, fd, to, 0) })
}

// Remove removes a file or an empty directory.
func (d *Dir) Remove(name string) error {
	return d.at("remove", name, func(fd int) error {
		err := unix.Unlinkat(fd, name, 0)
		if err == unix.EISDIR || err == unix.EPERM { // what Linux and macOS return for a directory
			err = unix.Unlinkat(fd, name, unix.AT_REMOVEDIR)
		}
		return err
	})
}

// BeforeChange is called before each change of a directory if it is not nil. A test
// sets it in a process that it ends there.
var BeforeChange func()

func changing() {
	if BeforeChange != nil {
		BeforeChange()
	}
}

func (d *Dir) at(op, name string, do func(fd int) error) error {
	if err := d.check(op, name); err != nil {
		return err
	}
	if op != "lstat" {
		changing()
	}
	for {
		switch err := do(d.fd()); err {
		case nil:
			return nil
		case unix.EINTR:
		default:
			return &fs.PathError{Op: op, Path: d.path(name), Err: err}
		}
	}
}

// Entries returns the entries of the directory, at most limit of them, and
// whether there are more.
func (d *Dir) Entries(limit int) (entries []fs.DirEntry, more bool, err error) {
	f, err := hold(d.fd(), ".", d.Path(), 0) // a separate place in the list
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	for len(entries) <= limit {
		some, err := f.file.ReadDir(min(limit+1-len(entries), 1024))
		entries = append(entries, some...)
		if len(some) == 0 || err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return entries, false, err
		}
	}
	return entries[:limit], true, nil
}

// Sync makes the names in the directory last, on file systems that can.
func (d *Dir) Sync() error {
	err := d.file.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

// lstat describes the entry with a name.
func (d *Dir) lstat(name string) (stat unix.Stat_t, err error) {
	err = d.at("lstat", name, func(fd int) error { return unix.Fstatat(fd, name, &stat, unix.AT_SYMLINK_NOFOLLOW) })
	return stat, err
}

// ErrNotRegular says that the place of a file or folder of state is taken by
// something of another kind.
var ErrNotRegular = errors.New("not a regular file")

// explain returns the error that an entry is of another kind where that is why it
// could not be opened, and err otherwise.
func (d *Dir) explain(name string, want fs.FileMode, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	stat, statErr := d.lstat(name)
	if statErr != nil {
		return err
	}
	if other := otherKind(uint32(stat.Mode), want); other != nil {
		return &fs.PathError{Op: "open", Path: d.path(name), Err: other}
	}
	return err
}

// A kindError names what has the place of a file or a folder.
type kindError struct{ is, want string }

func (e *kindError) Error() string {
	return fmt.Sprintf("it is a %s, not a %s; remove it", e.is, e.want)
}

func (e *kindError) Is(target error) bool { return target == ErrNotRegular }

// otherKind returns an error where a mode is not that of a regular file, or of a
// directory where want says so.
func otherKind(mode uint32, want fs.FileMode) error {
	e := &kindError{want: "regular file"}
	if want == fs.ModeDir {
		e.want = "directory"
	}
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		e.is = "regular file"
	case unix.S_IFDIR:
		e.is = "directory"
	case unix.S_IFLNK:
		e.is = "symbolic link"
	case unix.S_IFIFO:
		e.is = "named pipe"
	case unix.S_IFSOCK:
		e.is = "socket"
	default:
		e.is = "device"
	}
	if e.is == e.want {
		return nil
	}
	return e
}
