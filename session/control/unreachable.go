package control

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/session"
)

// ErrUnreachable is the error of a call to a process that holds a session and is
// alive, but not behind its socket, and of a stop that it cannot be asked for.
var ErrUnreachable = errors.New("the session cannot be reached by its socket")

// unreachable is ErrUnreachable with its cause, and what can be done.
type unreachable struct {
	entry Entry
	cause error
}

func (u *unreachable) Error() string {
	text := fmt.Sprintf("session %s cannot be reached: %v", u.entry.Label(), u.cause)
	if u.Is(ErrUnreachable) {
		text += fmt.Sprintf("; \"session stop %s\" ends it", u.entry.Label())
	}
	return text
}

func (u *unreachable) Unwrap() error { return u.cause }

// Is reports whether the process that holds the session does not listen at the
// socket any more, or speaks another version.
func (u *unreachable) Is(target error) bool {
	if target != ErrUnreachable || u.entry.State == session.StateStarting {
		return false
	}
	for _, gone := range []error{errVersion, errForeign, unix.ENOENT, unix.ECONNREFUSED, unix.ENOTSOCK} {
		if errors.Is(u.cause, gone) {
			return true
		}
	}
	return false
}
