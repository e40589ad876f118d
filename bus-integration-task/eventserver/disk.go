package eventserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
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

// disk reports whether the disk of the store has space, looking at most once a second.
type disk struct {
	folder  string
	minimum int64 // no check if it is not above 0

	mu      sync.Mutex
	checked time.Time
	full    bool
}

func (d *disk) isFull(now time.Time) bool {
	if d.folder == "" || d.minimum <= 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if age := now.Sub(d.checked); age < 0 || age >= time.Second {
		var s syscall.Statfs_t
		if err := syscall.Statfs(d.folder, &s); err == nil {
			d.full = uint64(s.Bavail)*uint64(s.Bsize) < uint64(d.minimum)
		}
		d.checked = now
	}
	return d.full
}
