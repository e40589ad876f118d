package eventserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// lockStore makes the folder of a store and locks it. JetStream does not: two servers in
// one folder would destroy each other's events. The kernel releases the lock at the end of
// the process.
func lockStore(folder string) (*os.File, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(folder, "bus-events.lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errors.New("another server uses it; end that one, or name another folder")
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("store %s: %w", folder, err)
	}
	return f, nil
}

// disk reports whether the disk of the store has space.
type disk struct {
	folder  string
	minimum int64 // no check if it is not above 0

	mu      sync.Mutex
	pending int64 // bytes that are being written
}

// take reports whether there is space for a message of so many bytes, besides those that
// are being written. If so, the caller must give the bytes back once it is written.
func (d *disk) take(size int) bool {
	if d.folder == "" || d.minimum <= 0 {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	need := 2 * int64(size) // in a cluster it is also in the journal of the replication
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.folder, &s); err == nil && int64(s.Bavail)*int64(s.Bsize)-d.pending-need < d.minimum {
		return false
	}
	d.pending += need
	return true
}

func (d *disk) give(size int) {
	if d.folder == "" || d.minimum <= 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending -= 2 * int64(size)
}
