package control

import (
	"errors"
	"fmt"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/unix"
	"github.com/busdk/bus-agent/session"
)

// Errors of sessions. Errors also match those of package session, even if another
// process holds the session.
var (
	// ErrUnknown: the session does not exist.
	ErrUnknown = errors.New("no such session")
	// ErrRunning: the session is running.
	ErrRunning = errors.New("the session is running")
	// ErrNotRunning: the session has ended.
	ErrNotRunning = errors.New("the session is not running")
	// ErrNotResumable: the session ended before its runtime gave it an ID.
	ErrNotResumable = errors.New("the session cannot be resumed")
	// ErrNameTaken: another session has the name.
	ErrNameTaken = errors.New("another session has the name")
	// ErrElsewhere: another process holds the session and does not serve it.
	ErrElsewhere = errors.New("another process holds the session and does not serve it")
)

// usage returns a usage error with a text, which matches target.
func usage(target error, format string, args ...any) error {
	return agent.Usagef("%w", &because{fmt.Sprintf(format, args...), target})
}

// notResumable is the error of resuming a session without a conversation.
func notResumable(e Entry) error {
	return usage(ErrNotResumable, "session %s %s before its first turn; it cannot be resumed", e.Label(), e.State)
}

func unsupported(format string, args ...any) error {
	return usage(session.ErrUnsupported, format, args...)
}

// ErrUnreachable is the error of a call, including Stop, to a process that holds
// a session and is alive but does not answer on its socket.
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

// A Failure is an error as it is recorded, and as it is sent over a socket.
type Failure struct {
	Kind string `json:"kind"`
	// Reason names the error of this package or of package session that it matches.
	Reason  string `json:"reason,omitempty"`
	Runtime string `json:"runtime,omitempty"`
	Text    string `json:"text"`
	Stderr  string `json:"stderr,omitempty"`
	Code    int    `json:"code,omitempty"`
}

func failureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Kind: agent.KindOf(err), Text: err.Error()}
	for reason, target := range reasons {
		if errors.Is(err, target) {
			f.Reason = reason
		}
	}
	if e, ok := errors.AsType[*agent.Error](err); ok {
		f.Runtime, f.Text = e.Runtime, e.Err.Error()
	}
	if e, ok := errors.AsType[*agent.ExitError](err); ok {
		f.Stderr, f.Code = e.Stderr, e.Code
	}
	return f
}

// reasons are the errors that a caller can match also where they come from another
// process. No error matches two of them.
var reasons = map[string]error{
	"not_delivered": session.ErrNotDelivered, "too_late": session.ErrTooLate, "unsupported": session.ErrUnsupported,
	"running": ErrRunning, "not_running": ErrNotRunning, "name_taken": ErrNameTaken, "not_resumable": ErrNotResumable,
}

// because is an error with a separate text. The cause may be nil.
type because struct {
	text  string
	cause error
}

func (b *because) Error() string { return b.text }
func (b *because) Unwrap() error { return b.cause }

// err returns the error that f was made of, as far as callers can tell.
func (f *Failure) err() error {
	if f == nil {
		return nil
	}
	text := &because{f.Text, reasons[f.Reason]}
	if f.Stderr != "" || f.Code != 0 {
		text.cause = errors.Join(text.cause, &agent.ExitError{Code: f.Code, Stderr: f.Stderr})
	}
	for _, kind := range []error{
		agent.ErrUsage, agent.ErrNotInstalled, agent.ErrNoneAvailable, agent.ErrAuthentication, agent.ErrQuota,
		agent.ErrAgent, agent.ErrTimeout, agent.ErrIdleTimeout, agent.ErrCanceled,
	} {
		if agent.KindOf(kind) == f.Kind {
			return &agent.Error{Kind: kind, Runtime: f.Runtime, Err: text}
		}
	}
	return text
}
