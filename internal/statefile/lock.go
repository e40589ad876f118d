package statefile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/busdk/bus-agent/internal/unix"
)

// LockWait is how long Lock waits. bus-agent holds its locks for milliseconds.
const LockWait = 10 * time.Second

// ErrLocked says that another process holds a lock.
var ErrLocked = errors.New("another process holds the lock")

// A Lock is a file lock between processes, and between users of one file in this
// one. The kernel drops it with the process.
type Lock struct {
	dir  *Dir // nil where the file is not removed
	name string
	file *os.File
}

// Lock takes the lock of a file, which is made where there is none. It waits until
// the lock is free, ctx is done or LockWait has passed, which is [ErrLocked].
func (d *Dir) Lock(ctx context.Context, name string) (*Lock, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, LockWait, errWaited)
	defer cancel()
	for {
		f, err := d.open(name, unix.O_RDWR|unix.O_CREAT, nil)
		if err != nil {
			return nil, err
		}
		if err := WaitLock(ctx, f); err != nil {
			f.Close()
			return nil, err
		}
		// The holder before may have removed the file: then it locks nothing.
		if d.names(name, f) {
			return &Lock{d, name, f}, nil
		}
		f.Close()
	}
}

// names reports whether a name is that of an open file.
func (d *Dir) names(name string, f *os.File) bool {
	var own unix.Stat_t
	now, err := d.lstat(name)
	return err == nil && unix.Fstat(int(f.Fd()), &own) == nil && own.Dev == now.Dev && own.Ino == now.Ino
}

// LockPath takes the lock of the file at path, see [Dir.Lock]. It is not for
// [Lock.Remove].
func LockPath(ctx context.Context, path string) (*Lock, error) {
	return in(path, func(d *Dir, name string) (*Lock, error) {
		l, err := d.Lock(ctx, name)
		if err == nil {
			l.dir = nil
		}
		return l, err
	})
}

// TryLockPath is LockPath that waits no longer than [Locked] holds the lock.
func TryLockPath(path string) (*Lock, error) {
	f, err := in(path, func(d *Dir, name string) (*os.File, error) { return d.open(name, unix.O_RDWR|unix.O_CREAT, nil) })
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), probeWait, ErrLocked)
	defer cancel()
	if err := WaitLock(ctx, f); err != nil {
		f.Close()
		return nil, err
	}
	return &Lock{file: f, name: filepath.Base(path)}, nil
}

// probeWait is longer than any Locked holds a lock.
const probeWait = 100 * time.Millisecond

// Locked reports whether a process has the lock of the file at path.
func Locked(path string) bool {
	f, err := Open(path)
	if err != nil {
		return false
	}
	l := Lock{file: f}
	defer l.Release()
	return flock(f, unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK
}

// Release releases the lock explicitly, because a process that is being started
// holds a copy of the descriptor for a moment.
func (l *Lock) Release() {
	_ = Unlock(l.file)
	l.file.Close()
}

// Remove removes the file and releases the lock. Those that wait for it make
// another one.
func (l *Lock) Remove() {
	if l.dir.names(l.name, l.file) {
		_ = l.dir.Remove(l.name)
	}
	l.Release()
}

// errWaited is the cause of a context that LockWait has ended.
var errWaited = errors.New("waited for a lock")

// lockPoll is the time between two attempts to take a lock.
const lockPoll = 5 * time.Millisecond

// WaitLock takes the lock of an open file or directory, as [Dir.Lock] does.
func WaitLock(ctx context.Context, f *os.File) error {
	ctx, cancel := context.WithTimeoutCause(ctx, LockWait, errWaited)
	defer cancel()
	for {
		err := TryLock(f)
		if !errors.Is(err, ErrLocked) {
			return err
		}
		select {
		case <-time.After(lockPoll):
			continue
		case <-ctx.Done():
		}
		if cause := context.Cause(ctx); cause != errWaited {
			return fmt.Errorf("%s: waiting for its lock: %w", f.Name(), cause)
		}
		return fmt.Errorf("%s: %w for %v; end that process (lsof or fuser names it) and try again", f.Name(), ErrLocked, LockWait)
	}
}

// TryLock takes the lock of an open file or directory if it is free, and returns
// [ErrLocked] otherwise.
func TryLock(f *os.File) error {
	switch err := flock(f, unix.LOCK_EX|unix.LOCK_NB); err {
	case nil:
		return nil
	case unix.EWOULDBLOCK:
		return ErrLocked
	default:
		return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
}

// Unlock releases the lock of an open file or directory.
func Unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}
