package eventserver

import (
	"sync"
	"syscall"
	"time"
)

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
