package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/internal/unix"
)

// maxHeld is how many directories are held at once, one in the other. What is
// deeper is moved to the top of what is removed, so that it takes no longer than
// the same folders next to each other.
const maxHeld = 64

// batch is how many entries of a directory are read at once.
const batch = 256

// deepName begins the names of folders that were moved to the top.
const deepName = ".bus-agent-deep-"

// Remove removes what has the name in parent, with everything in it. Directories
// that the user may not read or write are made so. It leaves the entries except,
// which are slash-separated paths, and the directories they are in. The file last is
// removed after everything else. Removing a name that does not exist succeeds. Work
// over the budget ends with [ErrOver]; the next call continues.
func Remove(b *Budget, parent *os.Root, name, last string, except ...string) error {
	base, err := parent.Open(".")
	if err != nil {
		return err
	}
	defer base.Close()
	fd := int(base.Fd())
	if err := b.Spent(); err != nil {
		return err
	}
	top, err := openDir(fd, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case notDir(err):
		return wrap("remove", name, unix.Unlinkat(fd, name, 0))
	case err != nil:
		return wrap("open", name, err)
	}
	r := &remover{budget: b, base: fd, last: last, except: except, held: []*folder{{file: top, name: name}}}
	defer r.close()
	if err := r.run(); err != nil {
		return err
	}
	return r.failed
}

// A remover removes one tree. The top of it is held[0].
type remover struct {
	budget *Budget
	base   int // descriptor of the directory that the tree is in
	last   string
	except []string

	held   []*folder
	moved  int
	failed error // the first
	kept   bool  // something was left on purpose
}

// A folder is a directory on the way down.
type folder struct {
	file    *os.File
	name    string
	rel     string // from the top
	entries []fs.DirEntry
	changed bool // since the entries were read from the start
	open    bool // the user's rights to it were seen to
}

func (f *folder) fd() int { return int(f.file.Fd()) }

// allow lets the user change the directory.
func (f *folder) allow() bool {
	if f.open {
		return false
	}
	f.open = true
	return unix.Fchmod(f.fd(), 0o700) == nil
}

func (r *remover) close() {
	for _, f := range r.held {
		f.file.Close()
	}
}

func (r *remover) fail(rel string, err error) {
	if r.failed == nil {
		r.failed = wrap("remove", rel, err)
	}
}

// run removes until nothing is held. The error is that of the budget.
func (r *remover) run() error {
	for len(r.held) > 0 {
		at := r.held[len(r.held)-1]
		if len(at.entries) == 0 {
			var err error
			at.entries, err = at.file.ReadDir(batch)
			if len(at.entries) == 0 {
				if err == nil || errors.Is(err, io.EOF) {
					err = r.leave(at)
				}
				if err != nil {
					return err
				}
				continue
			}
		}
		entry := at.entries[0]
		at.entries = at.entries[1:]
		if err := r.budget.Entry(); err != nil {
			return err
		}
		rel := path.Join(at.rel, entry.Name())
		switch {
		case slices.Contains(r.except, rel):
			r.kept = true
		case len(r.held) == 1 && entry.Name() == r.last && !entry.IsDir():
		case entry.IsDir():
			r.enter(at, entry.Name(), rel)
		default:
			r.unlink(at, entry.Name(), rel)
		}
	}
	return nil
}

// leave removes a directory that has been read to its end. Systems may skip
// entries while others are removed, so what is not empty is read again while that
// changes anything.
func (r *remover) leave(at *folder) error {
	if len(r.held) == 1 {
		if at.again() {
			return nil
		}
		r.held = nil
		defer at.file.Close()
		return r.finish(at)
	}
	up := r.held[len(r.held)-2]
	err := unix.Unlinkat(up.fd(), at.name, unix.AT_REMOVEDIR)
	if err == unix.EACCES && up.allow() {
		err = unix.Unlinkat(up.fd(), at.name, unix.AT_REMOVEDIR)
	}
	full := err == unix.ENOTEMPTY || err == unix.EEXIST
	if full && at.again() {
		return nil
	}
	switch {
	case err == nil || err == unix.ENOENT:
		up.changed = true
	case !full || !r.kept:
		r.fail(at.rel, err)
	}
	r.held = r.held[:len(r.held)-1]
	at.file.Close()
	return nil
}

// again begins to read a directory from its start if it has changed since.
func (f *folder) again() bool {
	if !f.changed {
		return false
	}
	f.changed = false
	_, err := f.file.Seek(0, io.SeekStart)
	return err == nil
}

// finish removes the top of the tree.
func (r *remover) finish(top *folder) error {
	if r.failed != nil {
		return nil
	}
	if r.last != "" {
		if err := unix.Unlinkat(top.fd(), r.last, 0); err != nil && err != unix.ENOENT {
			return wrap("remove", r.last, err)
		}
	}
	if r.kept {
		return nil
	}
	return wrap("remove", top.name, unix.Unlinkat(r.base, top.name, unix.AT_REMOVEDIR))
}

// enter goes down into a directory.
func (r *remover) enter(at *folder, name, rel string) {
	if len(r.held) >= maxHeld && r.lift(at, name) {
		return
	}
	file, err := openDir(at.fd(), name)
	if errors.Is(err, fs.ErrPermission) && at.allow() {
		file, err = openDir(at.fd(), name)
	}
	switch {
	case err == nil:
		r.held = append(r.held, &folder{file: file, name: name, rel: rel})
	case notDir(err): // it was replaced
		r.unlink(at, name, rel)
	case !errors.Is(err, fs.ErrNotExist):
		r.fail(rel, err)
	}
}

// lift moves a directory to the top of the tree.
func (r *remover) lift(at *folder, name string) bool {
	top := r.held[0]
	for range 64 { // the agent may have names of the kind
		r.moved++
		to := fmt.Sprintf("%s%d", deepName, r.moved)
		err := renameDir(at, name, top, to)
		if err == nil {
			top.changed, at.changed = true, true
			return true
		}
		if err != unix.EEXIST && err != unix.ENOTEMPTY && err != unix.ENOTDIR {
			return false
		}
	}
	return false
}

func renameDir(at *folder, name string, top *folder, to string) error {
	err := unix.Renameat(at.fd(), name, top.fd(), to)
	if err != unix.EACCES {
		return err
	}
	at.allow()
	top.allow()
	if dir, err := openDir(at.fd(), name); err == nil { // its ".." is to be written
		unix.Fchmod(int(dir.Fd()), 0o700)
		dir.Close()
	}
	return unix.Renameat(at.fd(), name, top.fd(), to)
}

func (r *remover) unlink(at *folder, name, rel string) {
	err := unix.Unlinkat(at.fd(), name, 0)
	if (err == unix.EACCES || err == unix.EPERM) && at.allow() {
		err = unix.Unlinkat(at.fd(), name, 0)
	}
	if err != nil && err != unix.ENOENT {
		r.fail(rel, err)
		return
	}
	at.changed = true
}

// openDir opens the directory with a name, which is not a link, and makes it
// readable where the user may do so.
func openDir(at int, name string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := openAt(at, name, flags)
	if err == unix.EACCES && makeReadable(at, name) == nil {
		fd, err = openAt(at, name, flags)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func openAt(at int, name string, flags int) (fd int, err error) {
	for {
		if fd, err = unix.Openat(at, name, flags, 0); err != unix.EINTR {
			return fd, err
		}
	}
}

func notDir(err error) bool { return err == unix.ENOTDIR || err == unix.ELOOP }

func wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: strings.ToValidUTF8(name, "?"), Err: err}
}
