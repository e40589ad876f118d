package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/internal/process"
)

// ErrUnreachable is the error of a call to a supervisor that is alive, but not
// behind its socket.
var ErrUnreachable = errors.New("the supervisor cannot be reached by its socket")

// unreachable is ErrUnreachable with its cause, and what can be done.
type unreachable struct {
	entry Entry
	cause error
}

func (u *unreachable) Error() string {
	text := fmt.Sprintf("session %s cannot be reached: %v", u.entry.Handle(), u.cause)
	if u.Is(ErrUnreachable) {
		text += fmt.Sprintf("; \"session stop %s\" ends it", u.entry.Handle())
	}
	return text
}

func (u *unreachable) Unwrap() error { return u.cause }

// Is reports whether there is nobody at the socket, who was there before.
func (u *unreachable) Is(target error) bool {
	if target != ErrUnreachable || u.entry.Stored != StateLive {
		return false
	}
	for _, gone := range []error{unix.ENOENT, unix.ECONNREFUSED, unix.ENOTSOCK} {
		if errors.Is(u.cause, gone) {
			return true
		}
	}
	return false
}

// endPoll is the time between two looks whether a supervisor has ended.
const endPoll = 20 * time.Millisecond

// Terminate ends a session whose socket is gone, by a signal to its supervisor, and
// returns when nothing of it is left.
func (s *Sessions) Terminate(ctx context.Context, e Entry) error {
	process.Terminate(e.Supervisor) // one that has ended meanwhile is what is wanted
	look := time.NewTicker(endPoll)
	defer look.Stop()
	for process.LifeOf(e.Supervisor) == process.Alive {
		select {
		case <-look.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	now, err := s.Load(e.ID)
	if err != nil {
		return fmt.Errorf("see what became of session %s: %w", e.Handle(), err)
	}
	return s.Stop(ctx, now, "") // which ends what a crash has left
}
