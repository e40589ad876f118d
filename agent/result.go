package agent

import (
	"time"
)

// A Result is what a run came to. It is returned beside an error too, with all
// that is known by then.
type Result struct {
	// Runtime is the token of the runtime that ran, Model the model the agent
	// reported or, when it reports none, the one that was asked for.
	Runtime string `json:"runtime"`
	Model   string `json:"model"`

	// SessionID resumes the session where the runtime can.
	SessionID string `json:"session_id"`

	// Text is the final answer: the text of the agent's last message after its
	// last tool call. TextTruncated says that its middle is missing; see
	// package runner for the limit.
	Text          string `json:"text"`
	TextTruncated bool   `json:"text_truncated,omitempty"`

	// Usage is nil where the runtime reported none.
	Usage *Usage `json:"usage,omitempty"`

	Duration time.Duration `json:"-"`

	// ExitCode is the agent's exit code: -1 when a signal ended it or when it
	// never started.
	ExitCode int    `json:"exit_code"`
	Signal   string `json:"signal,omitempty"`

	// Stdout and Stderr are what was kept of the agent's raw output.
	Stdout Captured `json:"-"`
	Stderr Captured `json:"-"`

	// Repeated says that the runtime sent parts of its answer again after a
	// lost connection, so Text may hold them more than once.
	Repeated bool `json:"repeated,omitempty"`

	// Warnings are the lines the runner warned with, in order.
	Warnings []string `json:"warnings,omitempty"`

	// RunID is what a [Recorder] calls the run; empty where none did.
	RunID string `json:"run_id,omitempty"`

	// Attempts are the runs of other runtimes that were tried before this one, or
	// would have been but for their rest, in order; see package fallback.
	Attempts []Attempt `json:"attempts,omitempty"`
}

// An Attempt is a run that failed, after which another runtime was tried.
type Attempt struct {
	Runtime string `json:"runtime"`
	Model   string `json:"model"`
	// Kind is what went wrong, as [KindOf] says it, and Error in words.
	Kind  string `json:"kind"`
	Error string `json:"error"`
	// RunID is what a [Recorder] calls the run; empty where none did, and where
	// nothing was started.
	RunID    string        `json:"run_id,omitempty"`
	Usage    *Usage        `json:"usage,omitempty"`
	Duration time.Duration `json:"-"`
}

// Captured is what was kept of an output: all of it, or its head and tail.
type Captured struct {
	Head []byte
	Tail []byte // empty unless Truncated
	// Size is the length of the whole output in bytes.
	Size int64
	// Truncated says that the bytes between Head and Tail are missing.
	Truncated bool
}

// Bytes returns the kept output: head and tail one after the other.
func (c Captured) Bytes() []byte {
	if len(c.Tail) == 0 {
		return c.Head
	}
	return append(append(make([]byte, 0, len(c.Head)+len(c.Tail)), c.Head...), c.Tail...)
}

// String returns the kept output as text.
func (c Captured) String() string { return string(c.Bytes()) }
