package supervisor

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
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
