package agent

import (
	"time"
)

// A Result describes how a run ended. With an error it has what is known by then.
type Result struct {
	// Runtime is the token of the runtime that ran, Model the model the agent
	// reported or, when it reports none, the one that was asked for.
	Runtime string `json:"runtime"`
	Model   string `json:"model"`

	// SessionID resumes the session, if the runtime supports it.
	SessionID string `json:"session_id"`

	// Text is the final answer: the text of the agent's last message after its
	// last tool call. TextTruncated reports that its middle is missing; see
	// package runner for the limit.
	Text          string `json:"text"`
	TextTruncated bool   `json:"text_truncated,omitempty"`

	// Usage is nil if the runtime reported none.
	Usage *Usage `json:"usage,omitempty"`

	Duration time.Duration `json:"-"`

	// ExitCode is the agent's exit code: -1 if a signal ended it or it was not
	// started.
	ExitCode int    `json:"exit_code"`
	Signal   string `json:"signal,omitempty"`

	// Stdout and Stderr are the kept parts of the agent's raw output.
	Stdout Captured `json:"-"`
	Stderr Captured `json:"-"`

	// Repeated reports that the runtime sent parts of its answer again after a
	// lost connection, so Text may have them more than once.
	Repeated bool `json:"repeated,omitempty"`

	// Warnings are the lines of the runner's warnings, in order.
	Warnings []string `json:"warnings,omitempty"`

	// RunID is the ID that a [Recorder] gave the run, or empty.
	RunID string `json:"run_id,omitempty"`

	// Attempts are the runs of other runtimes that were tried before this one, or
	// skipped because of a cooldown, in order; see package fallback.
	Attempts []Attempt `json:"attempts,omitempty"`
}

// An Attempt is a run that failed, after which another runtime was tried.
type Attempt struct {
	Runtime string `json:"runtime"`
	Model   string `json:"model"`
	// Kind is the kind of the error, see [KindOf], and Error its text.
	Kind  string `json:"kind"`
	Error string `json:"error"`
	// RunID is the ID that a [Recorder] gave the run; empty without one, or if
	// nothing was started.
	RunID    string        `json:"run_id,omitempty"`
	Usage    *Usage        `json:"usage,omitempty"`
	Duration time.Duration `json:"-"`
}

// Captured is the kept part of an output: all of it, or its head and tail.
type Captured struct {
	Head []byte
	Tail []byte // empty unless Truncated
	// Size is the length of the whole output in bytes.
	Size int64
	// Truncated reports that the bytes between Head and Tail are missing.
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
