package agent

import (
	"context"
	"io"
)

// A Recorder records the runs and sessions of a runner; package runs stores them on
// disk. Its method may be called by several goroutines at once.
type Recorder interface {
	// Record is called before the agent starts, after the request was checked, and
	// returns where the run is recorded. An error refuses the run, and nothing is
	// started; a recorder that must not fail a run warns instead. If the agent is not
	// installed or cannot be prepared, End of the Recording follows at once.
	Record(ctx context.Context, run Recordable) (Recording, error)
}

// A GroupRecorder is a Recorder that records runs with one purpose as a group: the
// attempts of package fallback.
type GroupRecorder interface {
	Recorder

	// Group begins a group of runs that start in environ. Those that are recorded
	// within the returned context belong to it. The returned function ends it, after
	// the last of them, and must be called once with what that one returned.
	Group(ctx context.Context, environ []string) (context.Context, func(Result, error))
}

// A Recordable is a run or a session that is about to begin.
type Recordable struct {
	// Start lacks the command, which is built once the prompt is known; see
	// [Recording.Command].
	Start Start

	// Root is the repository root of the workdir, absolute; the workdir itself
	// without a repository.
	Root string

	// Request is the resolved request; its Prompt is that for the agent, or the
	// first message of a session, which can be empty. Slices and maps must not be
	// changed.
	Request Request

	// Environ is the agent's environment as far as it is known. Its secrets, see
	// runner.Mask, must not be written anywhere.
	Environ []string

	// Secrets are further secrets, as entries "NAME=value" like those of Environ: the
	// ones of MCP servers, see [MCPSecrets].
	Secrets []string

	// ForeignEnv names variables that the run should not have: credentials of
	// other runtimes, and variables that an agent sets for its own tools.
	ForeignEnv []string

	// Provider is the provider of the runtime's model, named as in the
	// OpenTelemetry GenAI conventions; empty if unknown.
	Provider string

	// Session reports that it is a session.
	Session bool

	// Version returns the version of the agent's CLI, which it calls while ctx
	// lasts. It must not be called after End of the Recording has returned. Nil if
	// there is none.
	Version func(ctx context.Context) (string, error)

	// Warn gives one line to the user. It may be called during Record, and during
	// Started and End of the Recording.
	Warn func(line string)
}

// A Recording receives one run and may add to it. The zero value receives nothing. An
// error of one of its functions or writers stops the agent and fails the run, as one
// of the caller's does.
type Recording struct {
	// RunID is the ID of the run; see [Result.RunID].
	RunID string

	// Env holds variables for the agent as "NAME=value"; a NAME without "=" is
	// removed. The runtime's own and Request.Env win.
	Env []string

	// Prompt replaces Request.Prompt unless it is empty.
	Prompt string

	// Command is called once with the command that is about to start. Its slices
	// must not be changed.
	Command func(Command)

	// Started is called once the agent's process runs, before its output is read.
	Started func(Process)

	// Stdout and Stderr get the agent's raw output before the caller does, each on
	// one goroutine.
	Stdout io.Writer
	Stderr io.Writer

	// Events gets every event before the caller does, on the goroutine of Stdout;
	// the event is valid only during the call.
	Events func(*Event) error

	// Message is called with each message to the agent of a session, including the
	// first, before it is sent, and with the user's answers to questions. It may be
	// called while Events is.
	Message func(m UserMessage) error

	// End is called exactly once, after the run is over and all other functions
	// have returned, with the caller's result and error. Its error becomes that of
	// a run without one. It must return when ctx is done: the end of a run does
	// not wait longer for its record.
	End func(ctx context.Context, result Result, err error) error
}

// A UserMessage is a message to the agent of a session.
type UserMessage struct {
	Text        string
	Attachments []AttachmentInfo // without their content
}

// A Process is an agent's process.
type Process struct {
	PID int
	// Identity identifies it among all processes of any time and machine.
	Identity string
}

// Labels are the project and task of a run and the runs it belongs to. Only a
// [Recorder] reads them, and chooses those that are empty.
type Labels struct {
	Project string `json:"project,omitempty"`
	Task    string `json:"task,omitempty"`
	// Parent is the ID of the run that started this one.
	Parent string `json:"parent,omitempty"`
	// Previous is the ID of the run before this one with the same purpose, for
	// example that of a runtime without quota.
	Previous string `json:"previous,omitempty"`
}
