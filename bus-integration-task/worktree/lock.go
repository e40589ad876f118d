package worktree

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/busdk/bus-integration-task/internal/unix"
)

const lockName = "bus-task.lock"

// lockFile takes a lock without waiting. The error matches ErrLocked when another process,
// or another descriptor of this one, holds it.
func lockFile(name string) (*os.File, error) {
	f, err := unix.Lock(name)
	if errors.Is(err, unix.ErrHeld) {
		err = problem(ErrLocked, "%s: another process holds it; wait until it has finished", name)
	}
	return f, err
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
