package worktree

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

const lockName = "bus-task.lock"

// lockFile takes a lock without waiting. The kernel releases it when the last descriptor
// of the file is closed, so also after a crash. The error matches ErrLocked when another
// process, or another descriptor of this one, holds it.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = problem(ErrLocked, "%s: another process holds it; wait until it has finished", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// waitLock takes a lock, and waits for it at most for the given time.
func waitLock(ctx context.Context, name string, limit time.Duration) (*os.File, error) {
	end := time.NewTimer(limit)
	defer end.Stop()
	pause := time.Millisecond
	for {
		f, err := lockFile(name)
		if err == nil || !errors.Is(err, ErrLocked) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-end.C:
			return nil, problem(ErrLocked, "%s: another process has held it for %v; try again when it has finished", name, limit)
		case <-time.After(pause):
			pause = min(2*pause, 50*time.Millisecond)
		}
	}
}

// unlock releases a lock. Closing alone would not while a process that is being started
// has a copy of the descriptor.
func unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}
