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

// lockWait bounds how long a lock is waited for. Writers hold it for milliseconds.
const lockWait = 10 * time.Second

// errWaited is why waiting for a lock ends before the caller's context.
var errWaited = errors.New("waited for a lock")

// lock takes the lock that all writers of path share and returns what releases
// it. It waits until the lock is free, ctx ends or lockWait has passed. The lock is
// on a file next to path because path itself is replaced by every write; that file
// stays, because a lock on a removed file excludes no other process. The system
// releases the lock of a process that dies.
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
		return nil, notWritten(path, explain(name, err))
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
