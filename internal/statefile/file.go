package statefile

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/busdk/bus-agent/internal/unix"
)

// Open opens the regular file at path for reading, see [Dir.Open].
func Open(path string) (*os.File, error) {
	return in(path, func(d *Dir, name string) (*os.File, error) { return d.Open(name) })
}

// Read returns the content of the regular file at path, see [Dir.Read].
func Read(path string, limit int64) ([]byte, error) {
	return in(path, func(d *Dir, name string) ([]byte, error) { return d.Read(name, limit) })
}

// Append opens the regular file at path for appending, see [Dir.Append].
func Append(path string) (*os.File, error) {
	return in(path, func(d *Dir, name string) (*os.File, error) { return d.Append(name) })
}

// Truncate opens the regular file at path for writing, see [Dir.Truncate].
func Truncate(path string) (*os.File, error) {
	return in(path, func(d *Dir, name string) (*os.File, error) { return d.Truncate(name) })
}

// Replace writes the file at path, see [Dir.Replace].
func Replace(path string, data []byte) error {
	_, err := in(path, func(d *Dir, name string) (struct{}, error) { return struct{}{}, d.Replace(name, data) })
	return err
}

// in calls do with the directory of path.
func in[T any](path string, do func(d *Dir, name string) (T, error)) (none T, err error) {
	d, err := OpenDir(filepath.Dir(path))
	if err != nil {
		return none, err
	}
	defer d.Close()
	return do(d, filepath.Base(path))
}

// Open opens a regular file for reading. The error is fs.ErrNotExist where there
// is none, [ErrNotRegular] where something else has its name, and [ErrSparse]
// where it is not what a program has written.
func (d *Dir) Open(name string) (*os.File, error) {
	return d.open(name, unix.O_RDONLY, CheckReadable)
}

// Create makes a file, for the user alone, and opens it for reading and writing.
// The error is fs.ErrExist where something has its name.
func (d *Dir) Create(name string) (*os.File, error) {
	return d.open(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, nil)
}

// Append opens a regular file for appending and reading, which is made for the user
// alone where there is none. A file that has another name too is refused: that
// can be a file of the user that the agent may not write to.
func (d *Dir) Append(name string) (*os.File, error) {
	return d.open(name, unix.O_RDWR|unix.O_CREAT|unix.O_APPEND, checkSingle)
}

// Truncate opens a regular file for writing, empty, which is made where there is
// none. What [Dir.Append] refuses it refuses too.
func (d *Dir) Truncate(name string) (*os.File, error) {
	f, err := d.open(name, unix.O_RDWR|unix.O_CREAT, checkSingle)
	if err == nil {
		if err = f.Truncate(0); err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, err
}

func checkSingle(stat *unix.Stat_t) error {
	if stat.Nlink > 1 {
		return errors.New("it has another name too, a hard link; remove it")
	}
	return nil
}

// ReadLinked returns the content of the regular file of at most limit bytes at path. It
// follows links, which users have among their configuration files, and does not wait
// for a pipe or device. The error is [ErrNotRegular] or [ErrTooLarge] for other files.
func ReadLinked(path string, limit int64) ([]byte, error) { return readLinked(path, limit, nil) }

// ReadOwned is [ReadLinked] for a file that must belong to this user or root: one of another
// user could be in any directory that others can write to.
func ReadOwned(path string, limit int64) ([]byte, error) {
	return readLinked(path, limit, func(info fs.FileInfo) error {
		if stat, ok := info.Sys().(*unix.SysStat); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
			return &fs.PathError{Op: "open", Path: path, Err: errors.New("it belongs to another user")}
		}
		return nil
	})
}

// readLinked is ReadLinked with a check of the open file, nil for none.
func readLinked(path string, limit int64, check func(fs.FileInfo) error) ([]byte, error) {
	notRegular := &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular // opening it can have an effect
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, notRegular // it was replaced
	}
	if check != nil {
		if err := check(info); err != nil {
			return nil, err
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: ErrTooLarge}
	}
	return text, err
}

// ErrTooLarge: a file has more bytes than the limit.
var ErrTooLarge = errors.New("file is too large")

// ErrSparse says that a file is large, and nearly all of it holes: a program that
// reads it reads zeros for hours.
var ErrSparse = errors.New("a sparse file")

// Files above sparseSize of which less than one part in sparsePart is on the disk
// are not read. Below that size, reading holes takes seconds at most.
const sparseSize, sparsePart = 64 << 20, 64

// CheckOpen is [CheckReadable] for an open file.
func CheckOpen(f *os.File) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
		return err
	}
	return CheckReadable(&stat)
}

// CheckReadable reports why an open file should not be read: it is not a regular
// file, or it is sparse.
func CheckReadable(stat *unix.Stat_t) error {
	if err := otherKind(uint32(stat.Mode), 0); err != nil {
		return err
	}
	if stat.Size > sparseSize && stat.Blocks < stat.Size/sparsePart/512 {
		return fmt.Errorf("%w of %d bytes, nearly all of it holes; remove it", ErrSparse, stat.Size)
	}
	return nil
}

func (d *Dir) open(name string, flags int, check func(*unix.Stat_t) error) (*os.File, error) {
	if err := d.check("open", name); err != nil {
		return nil, err
	}
	if flags&unix.O_CREAT != 0 {
		changing()
	}
	path := d.path(name)
	fd, err := openAt(d.fd(), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0o600)
	if err != nil {
		err = &fs.PathError{Op: "open", Path: path, Err: err}
		if flags&unix.O_EXCL != 0 {
			return nil, err
		}
		return nil, d.explain(name, 0, err)
	}
	var stat unix.Stat_t
	if err = unix.Fstat(fd, &stat); err == nil {
		err = otherKind(uint32(stat.Mode), 0)
	}
	if err == nil && check != nil {
		err = check(&stat)
	}
	if err != nil {
		unix.Close(fd)
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Read returns the content of a regular file of at most limit bytes.
func (d *Dir) Read(name string, limit int64) ([]byte, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = &fs.PathError{Op: "read", Path: d.path(name), Err: fmt.Errorf("it has more than %d bytes", limit)}
	}
	return text, err
}

// Replace writes a file, for the user alone, that appears whole and is safe on the
// disk, in place of what has its name. A link is replaced, not followed.
func (d *Dir) Replace(name string, data []byte) error {
	return d.ReplaceFrom(name, bytes.NewReader(data), true)
}

// ReplaceFrom is Replace for what a reader returns; without safe it does not wait
// for the disk.
func (d *Dir) ReplaceFrom(name string, from io.Reader, safe bool) error {
	return d.writeTemp(name, from, safe, func(temp string) error { return d.Rename(temp, name) })
}

// CreateFrom writes a file, for the user alone, that appears whole. The error is
// fs.ErrExist where something has its name.
func (d *Dir) CreateFrom(name string, from io.Reader) error {
	return d.writeTemp(name, from, false, func(temp string) error {
		err := d.Link(temp, name)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			// Not every file system has links.
			if _, statErr := d.lstat(name); errors.Is(statErr, fs.ErrNotExist) {
				return d.Rename(temp, name)
			}
		}
		if err == nil {
			err = d.Remove(temp)
		}
		return err
	})
}

// writeTemp writes a temporary file, which give gives its name.
func (d *Dir) writeTemp(name string, from io.Reader, safe bool, give func(temp string) error) error {
	f, temp, err := d.CreateTemp(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err == nil && safe {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = give(temp)
	}
	if err != nil {
		_ = d.Remove(temp)
	}
	return err
}

// CreateTemp is Create for a file whose name begins with a text and is otherwise
// made up, as [IsTemp] says.
func (d *Dir) CreateTemp(begin string) (f *os.File, name string, err error) {
	var random [6]byte
	_, _ = rand.Read(random[:]) // it never fails
	name = begin + "." + hex.EncodeToString(random[:]) + tempSuffix
	f, err = d.Create(name)
	return f, name, err
}

// tempSuffix ends the names of files that are being written.
const tempSuffix = ".part"

// IsTemp reports whether a name is that of a file which is being written by
// [Dir.Replace], or that a killed program has left.
func IsTemp(name string) bool { return strings.HasSuffix(name, tempSuffix) }
