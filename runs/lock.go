package runs

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A lock is a file lock between processes, and between users of one file in this
// one.
type lock struct{ file *os.File }

// lockPoll is how often a lock that is held is asked for.
const lockPoll = 5 * time.Millisecond

// lockAt takes the lock of the file at path, which is made if need be.
func lockAt(path string, limit time.Duration) (lock, error) {
	for deadline := time.Now().Add(limit); ; {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return lock{}, err
		}
		err = lockFile(f, deadline)
		if err != nil {
			f.Close()
			return lock{}, err
		}
		// The holder before may have removed the file: then it locks nothing.
		if own, err := f.Stat(); err == nil {
			if now, err := os.Lstat(path); err == nil && os.SameFile(own, now) {
				return lock{f}, nil
			}
		}
		f.Close()
	}
}

func lockFile(f *os.File, deadline time.Time) error {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return nil
		case err != unix.EWOULDBLOCK && err != unix.EINTR:
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		case time.Now().After(deadline):
			return fmt.Errorf("lock %s: somebody else holds it", f.Name())
		}
		time.Sleep(lockPoll)
	}
}

// remove removes the file and releases the lock.
func (l lock) remove() {
	_ = os.Remove(l.file.Name()) // who finds it takes it
	l.release()
}

// release releases the lock explicitly, because a process that is being started
// holds a copy of the descriptor for a moment.
func (l lock) release() {
	_ = unix.Flock(int(l.file.Fd()), unix.LOCK_UN)
	l.file.Close()
}
