package cmdline

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/internal/unix"
)

// The name of the file that has the results until the command succeeds is that of the
// file of --output with these around random hexadecimal digits. No other program makes
// such names.
const (
	partialInfix  = ".bus-agent-"
	partialSuffix = ".partial"
	partialRandom = 4 // bytes
)

// partialTries bounds how often the name of a new file may be taken.
const partialTries = 100

// maxSiblings is how many entries of a directory are searched for stale files.
const maxSiblings = 100_000

// outputFile is the file of --output. It is replaced when the command succeeds; until
// then, the results are in a file next to it, which this process has locked. What cannot
// be replaced, such as a device, a pipe or a file with several names, is written as it
// is.
type outputFile struct {
	*os.File
	path    string
	partial string   // the path of File; "" if that is path
	lock    *os.File // holds the lock until partial is no more needed
}

// errLink is the error of a file of --output that is a link, which an agent can have
// put there.
var errLink = errors.New("it is a symbolic link; name the file it leads to")

// isDescriptor reports whether path names an open file, as /dev/stderr does. It is a
// link of the system, and what is in the file stays.
func isDescriptor(path string) bool {
	switch path {
	case "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return true
	}
	in, _ := filepath.Match("/proc/*/fd/*", path)
	return in || filepath.Dir(path) == "/dev/fd"
}

// CheckOutput fails where a file for results cannot be written because of what exists now,
// before anything has started.
func CheckOutput(path string) error {
	if isDescriptor(path) {
		return nil
	}
	switch info, err := os.Lstat(path); {
	case err != nil:
		dir, err := os.Stat(filepath.Dir(path))
		if err == nil && !dir.IsDir() {
			err = errNotDirectory
		}
		if err != nil {
			return fmt.Errorf("its directory: %w", Cause(err))
		}
	case info.Mode()&os.ModeSymlink != 0:
		return errLink
	case info.IsDir():
		return errors.New("it is a directory; name a file")
	}
	return nil
}

// ReplaceFile writes data to the file at path, absolute, as --output does.
func (prog *Program) ReplaceFile(path string, data []byte) error {
	o, err := createPartial(path)
	if o == nil && err == nil {
		o = &outputFile{}
		o.File, err = prog.outlets.open(func() (*os.File, error) { return openOutput(path) })
	}
	if err == nil {
		_, err = o.Write(data)
		_, finishErr := o.finish(err == nil)
		err = cmp.Or(err, finishErr)
	}
	if err != nil {
		return OutputError(Quote(path), err)
	}
	return nil
}

// openOutput opens the file of --output to write it as it is. It follows no link in the
// place of the file.
func openOutput(path string) (*os.File, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC | unix.O_NOFOLLOW
	if isDescriptor(path) {
		flags = os.O_WRONLY | os.O_APPEND
	}
	f, err := os.OpenFile(path, flags, 0o666)
	if errors.Is(err, syscall.ELOOP) {
		err = errLink
	}
	return f, err
}

// createPartial makes the file next to path that replaces it at the end, with the same
// permissions, and removes stale ones. It returns nil where path is written as it is.
func createPartial(path string) (*outputFile, error) {
	mode, replace := replaceable(path)
	if !replace {
		return nil, nil
	}
	removeStalePartials(path)
	for range partialTries {
		o, err := tryPartial(path, cmp.Or(mode, 0o666))
		switch {
		case errors.Is(err, fs.ErrExist), errors.Is(err, statefile.ErrLocked):
			continue
		case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENAMETOOLONG):
			return nil, nil
		case err != nil:
			return nil, err
		}
		if mode != 0 {
			err = o.Chmod(mode) // the umask has applied
		}
		return o, err
	}
	return nil, fmt.Errorf("cannot create a file next to it: %w", fs.ErrExist)
}

// tryPartial makes and locks a file with a new name. The error is statefile.ErrLocked if
// another command has taken it for a stale one.
func tryPartial(path string, mode fs.FileMode) (*outputFile, error) {
	var random [partialRandom]byte
	_, _ = rand.Read(random[:]) // it never fails
	o := &outputFile{path: path, partial: path + partialInfix + hex.EncodeToString(random[:]) + partialSuffix}
	var err error
	if o.File, err = os.OpenFile(o.partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode); err != nil {
		return nil, err
	}
	// Without locks in the file system, no command removes the file.
	if err := statefile.TryLock(o.File); errors.Is(err, statefile.ErrLocked) || !isAt(o.partial, o.File) {
		o.Close()
		return nil, statefile.ErrLocked
	}
	// Closing File must not release the lock.
	fd, err := unix.FcntlInt(o.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		o.Close()
		return nil, errors.Join(err, os.Remove(o.partial))
	}
	o.lock = os.NewFile(uintptr(fd), o.partial)
	return o, nil
}

// release releases the lock. Closing alone would not while a program that is being started
// has a copy of the descriptor.
func (o *outputFile) release() {
	_ = statefile.Unlock(o.lock)
	o.lock.Close()
}

// isAt reports whether path is that of an open file.
func isAt(path string, f *os.File) bool {
	now, err := os.Lstat(path)
	opened, statErr := f.Stat()
	return err == nil && statErr == nil && os.SameFile(now, opened)
}

// isPartial reports whether name is that of a file next to the one with the name base.
func isPartial(name, base string) bool {
	name, begins := strings.CutPrefix(name, base+partialInfix)
	name, ends := strings.CutSuffix(name, partialSuffix)
	_, err := hex.DecodeString(name)
	return begins && ends && len(name) == hex.EncodedLen(partialRandom) && err == nil
}

// removeStalePartials removes the files next to path that commands have left which failed
// or were killed. What it cannot remove is left for the next command.
func removeStalePartials(path string) {
	d, err := statefile.OpenDir(filepath.Dir(path))
	if err != nil {
		return
	}
	defer d.Close()
	entries, _, _ := d.Entries(maxSiblings)
	for _, entry := range entries {
		if !isPartial(entry.Name(), filepath.Base(path)) {
			continue
		}
		f, err := d.Open(entry.Name())
		if err != nil {
			continue
		}
		info, err := f.Stat()
		if err == nil && ownFile(info) && statefile.TryLock(f) == nil && isAt(filepath.Join(filepath.Dir(path), entry.Name()), f) {
			_ = d.Remove(entry.Name())
		}
		f.Close()
	}
}

// ownFile reports whether a file is a regular one of this user with one name, or with none
// if it was replaced meanwhile.
func ownFile(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*unix.SysStat)
	return ok && info.Mode().IsRegular() && stat.Nlink <= 1 && int(stat.Uid) == os.Geteuid()
}

// replaceable reports whether a file can take the place of path, and the permissions of
// the one that has it, 0 for none.
func replaceable(path string) (fs.FileMode, bool) {
	if isDescriptor(path) {
		return 0, false
	}
	info, err := os.Lstat(path)
	if err != nil {
		return 0, errors.Is(err, fs.ErrNotExist)
	}
	return info.Mode().Perm(), ownFile(info) && unix.Access(path, unix.W_OK) == nil
}

// finish closes the file. With replace, the results take the place of path. Without, they
// do so only if nothing has it: kept is the file that has them if something does.
func (o *outputFile) finish(replace bool) (kept string, err error) {
	if o.partial == "" {
		return "", o.Close()
	}
	defer o.release()
	info, err := o.Stat()
	if err = errors.Join(err, o.Close()); err != nil {
		return "", err
	}
	switch now, err := os.Lstat(o.partial); {
	case err != nil:
		return "", err
	case !os.SameFile(info, now):
		return "", fmt.Errorf("another command has replaced %s", Quote(o.partial))
	case replace:
		return "", os.Rename(o.partial, o.path)
	case info.Size() > 0 && os.Link(o.partial, o.path) != nil:
		return o.partial, nil
	}
	return "", os.Remove(o.partial)
}
