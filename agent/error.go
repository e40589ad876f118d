package agent

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of errors a run ends with. Each [Error] matches exactly one of them
// with errors.Is. A command-line program exits 2 for ErrUsage and 1 for all
// others.
var (
	// ErrUsage: the request is wrong. Nothing was started or written.
	ErrUsage = errors.New("usage")
	// ErrNotInstalled: the selected runtime has no executable.
	ErrNotInstalled = errors.New("not installed")
	// ErrNoneAvailable: no runtime was named and none is available.
	ErrNoneAvailable = errors.New("none available")
	// ErrAuthentication: the agent is not logged in or its key was refused.
	ErrAuthentication = errors.New("authentication")
	// ErrQuota: a quota is used up or a rate limit was hit.
	ErrQuota = errors.New("quota")
	// ErrAgent: the agent failed in any other way.
	ErrAgent = errors.New("agent failure")
	// ErrTimeout: the run took longer than Request.Timeout.
	ErrTimeout = errors.New("timeout")
	// ErrIdleTimeout: the agent showed no progress for Request.IdleTimeout.
	ErrIdleTimeout = errors.New("idle timeout")
	// ErrCanceled: the context of the run was canceled.
	ErrCanceled = errors.New("canceled")
)

// An Error is a kind and a cause. errors.Is matches both; errors.As reaches the cause,
// for example an [*ExitError]. The text is that of the cause and has no secrets.
type Error struct {
	Kind    error  // one of the kinds above
	Runtime string // runtime token, where one is known
	Err     error  // never nil
}

func (e *Error) Error() string {
	if e.Runtime == "" {
		return e.Err.Error()
	}
	return e.Runtime + ": " + e.Err.Error()
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Err} }

// KindOf returns the kind of err in one word for records and JSON: "usage",
// "not_installed", "none_available", "authentication", "quota", "agent",
// "timeout", "idle_timeout", "canceled"; "" for nil and "error" for an error
// without a kind.
func KindOf(err error) string {
	if err == nil {
		return ""
	}
	for _, k := range []struct {
		kind error
		word string
	}{
		{ErrUsage, "usage"}, {ErrNotInstalled, "not_installed"}, {ErrNoneAvailable, "none_available"},
		{ErrAuthentication, "authentication"}, {ErrQuota, "quota"}, {ErrAgent, "agent"},
		{ErrTimeout, "timeout"}, {ErrIdleTimeout, "idle_timeout"}, {ErrCanceled, "canceled"},
	} {
		if errors.Is(err, k.kind) {
			return k.word
		}
	}
	return "error"
}

// An ExitError describes how the agent's process ended when the run failed.
type ExitError struct {
	// Code is the exit code, or -1 when a signal ended the process.
	Code int
	// Signal is the name of that signal, for example "SIGKILL".
	Signal string
	// Reason is the agent's own reason for its failure; it may be empty.
	Reason string
	// Stderr is the tail of the agent's standard error, with secrets masked. It
	// alone is not a sign of failure: agents write there at every run.
	Stderr string
}

func (e *ExitError) Error() string {
	var b strings.Builder
	switch {
	case e.Signal != "":
		fmt.Fprintf(&b, "ended by %s", e.Signal)
	default:
		fmt.Fprintf(&b, "exit code %d", e.Code)
	}
	if e.Reason != "" {
		b.WriteString(": " + e.Reason)
	}
	return b.String()
}
