package worktree

import (
	"errors"
	"fmt"
)

// Kinds of errors, for [errors.Is]. Every refusal leaves branches, commits and files as
// they were.
var (
	ErrName        = errors.New("refused name")                // a branch, a path, an identifier or a module path that is not safe
	ErrUnsupported = errors.New("unsupported repository")      // a kind of repository that the package does not handle
	ErrBranch      = errors.New("branch not usable")           // missing, checked out elsewhere, or not the one the primary is on
	ErrNoChange    = errors.New("no change")                   // there is nothing to commit
	ErrChanged     = errors.New("files have changed")          // a worktree was written to after its files were examined
	ErrContent     = errors.New("content cannot be committed") // named pipes, nested repositories, changed submodules
	ErrTooLarge    = errors.New("too large")                   // a limit on files or bytes
	ErrDirty       = errors.New("primary checkout is dirty")   // changes, files in the way, or an operation in progress
	ErrDiverged    = errors.New("primary branch has diverged") // a fast-forward is not possible
	ErrConflict    = errors.New("conflict")                    // Rebase: both sides changed the same lines
	ErrLocked      = errors.New("locked")                      // another process holds the lock
	ErrGone        = errors.New("worktree is gone")            // its folder or its record is missing or was replaced
	ErrGit         = errors.New("git failed")                  // git itself failed; the text has its message
)

// problem returns an error of a kind whose text is one line.
func problem(kind error, format string, args ...any) error {
	return &kindError{kind: kind, err: fmt.Errorf(format, args...)}
}

type kindError struct{ kind, err error }

func (e *kindError) Error() string   { return oneLine(e.err.Error(), 2000) }
func (e *kindError) Unwrap() []error { return []error{e.kind, e.err} }

// oneLine replaces control characters and invalid UTF-8, and cuts text after limit bytes.
func oneLine(text string, limit int) string {
	line := make([]rune, 0, min(len(text), limit))
	for i, c := range text {
		if i >= limit {
			return string(line) + "…"
		}
		if c < ' ' || c >= 0x7f && c < 0xa0 {
			c = ' '
		}
		line = append(line, c)
	}
	return string(line)
}
