package instructions

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// lockWait bounds how long the lock of a workdir is waited for. Locks of ours
// are held for milliseconds.
const lockWait = 3 * time.Second

// errLocked is why tryLock fails when another has the lock.
var errLocked = errors.New("locked by another process")

// lockWorkdir keeps other runs from adding to or removing from the workdir of
// root until release is called. Locking the directory itself leaves nothing
// behind and ends with the process.
//
// After a while it goes on without the lock: then whoever started this process
// holds it, as "flock . bus-agent run" does, and serializes runs already. The
// same goes for a file system without locks. What is done under the lock is
// written so that a lost race costs an error, never somebody's bytes.
func lockWorkdir(root *os.Root) (release func()) { return lockWithin(root, lockWait) }

func lockWithin(root *os.Root, wait time.Duration) (release func()) {
	for deadline := time.Now().Add(wait); ; time.Sleep(2 * time.Millisecond) {
		f, err := tryLock(root, ".")
		if err == nil {
			return func() { unlock(f) }
		}
		if !errors.Is(err, errLocked) || time.Now().After(deadline) {
			return func() {}
		}
	}
}

// tryLock takes the exclusive lock of a directory if it is free.
func tryLock(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	f.Close()
	if err == syscall.EWOULDBLOCK {
		err = errLocked
	}
	return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
}

// unlock releases what tryLock returned. It does so explicitly, because a
// process that is being started holds a copy of the descriptor for a moment.
func unlock(f *os.File) {
	syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	f.Close()
}
