package eventserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/busdk/bus-integration-task/internal/unix"
)

// lockStore makes the folder of a store and locks it. JetStream does not: two servers in
// one folder would destroy each other's events.
func lockStore(folder string) (*os.File, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	f, err := unix.Lock(filepath.Join(folder, "bus-events.lock"))
	if errors.Is(err, unix.ErrHeld) {
		err = fmt.Errorf("another server uses %s; end that one, or name another folder", folder)
	}
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
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
	if free, err := unix.FreeSpace(d.folder); err == nil && free-d.pending-need < d.minimum {
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
