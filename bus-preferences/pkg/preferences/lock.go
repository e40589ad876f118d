package preferences

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// errLocked is what tryLock returns while another holds the lock.
var errLocked = errors.New("locked")

// lock takes the lock that all writers of path share and returns what releases
// it. It waits until the lock is free or ctx ends. The lock is on a file beside
// path because path itself is replaced by every write; that file stays, as a
// lock on a removed file excludes nobody. The system releases the lock of a
// process that dies.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, notWritten(path, err)
	}
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, notWritten(path, err)
	}
	ownAsDir(f)
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		err := tryLock(f)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, errLocked) {
			f.Close()
			return nil, notWritten(path, fmt.Errorf("cannot lock %s: %w", name, err))
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for another program to finish writing %s: %w", path, ctx.Err())
		case <-time.After(wait):
		}
	}
}
