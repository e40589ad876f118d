package preferences

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// errLocked is the error of tryLock if another process holds the lock.
var errLocked = errors.New("locked")

// lockWait is the longest wait for a lock. Writers hold it for milliseconds.
const lockWait = 10 * time.Second

// errWaited is the cause of a wait that ended after lockWait.
var errWaited = errors.New("lock wait expired")

// lock acquires the lock of the writers of path and returns a function that releases
// it. It waits until the lock is free, ctx is done or lockWait has passed. It locks a
// separate file, because every write replaces path, and does not remove that file,
// because a lock on a removed file excludes no other process. The system releases
// the lock when the process dies.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, notWritten(path, err)
	}
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|openWithoutWaiting|openNoLink, 0o600)
	if err == nil {
		if err = checkRegular(f); err != nil {
			f.Close()
		}
	}
	if err != nil {
		return nil, notWritten(path, explainOpen(name, err))
	}
	ownAsDir(f)
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, errWaited)
	defer cancel()
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
			if context.Cause(ctx) == errWaited {
				return nil, notWritten(path, fmt.Errorf("another program has held the lock %s for %v; end it and try again: %w", name, lockWait, ctx.Err()))
			}
			return nil, fmt.Errorf("waiting for another program to finish writing %s: %w", path, ctx.Err())
		case <-time.After(wait):
		}
	}
}
