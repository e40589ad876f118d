package agent

import (
	"context"
	"io"
)

// A Recorder is told of every run and session of a runner that has one: package
// runs keeps them on disk. Its method may be called by several goroutines at
// once.
type Recorder interface {
	// Record is called when a run is settled and nothing can be wrong with its
	// request any more, before its agent starts. It returns what is to be told of
	// the run. An error refuses the run, and nothing is started: a recorder whose
	// failure shall not stand in a run's way warns instead.
	Record(ctx context.Context, run Recordable) (Recording, error)
}

// A Recordable is a run or a session that is about to begin.
type Recordable struct {
	// Start lacks the command, which is built once the prompt is known; see
	// [Recording.Command].
	Start Start

	// Root is the repository root above the workdir, absolute; the workdir itself
	// where there is no repository.
	Root string

	// Request is the settled request, Prompt what the agent would be given, or the
	// first message of a session, which can be empty. What the slices and maps
	// hold must not be changed.
	Request Request

	// Environ is the agent's environment as far as it is known. Its secrets, see
	// runner.Mask, must not be written anywhere.
	Environ []string

	// ForeignEnv names the variables that the run should go without: credentials of
	// other runtimes, and what an agent sets for its own tools alone.
	ForeignEnv []string

	// Provider is who answers for the runtime's model, in the words of the
	// OpenTelemetry GenAI conventions; empty where that is not known.
	Provider string

	// Session says that it is a session.
	Session bool

	// Version asks the agent's CLI for its version while ctx lasts. It must not be
	// called after End of the Recording has returned. Nil where it cannot be asked.
	Version func(ctx context.Context) (string, error)

	// Warn tells the user one line. It may be called during Record, and during
	// Started and End of the Recording.
	Warn func(line string)
}

// A Recording is what a [Recorder] wants to be told of one run, and what it adds
// to it. The zero value wants nothing. An error of one of its functions or writers
// stops the agent and fails the run, like one of the caller's.
type Recording struct {
	// RunID is what the run is called; see [Result.RunID].
	RunID string

	// Env holds variables for the agent as "NAME=value"; a NAME without "=" is
	// removed. The runtime's own and Request.Env win.
	Env []string

	// Prompt is what the agent is given in place of Request.Prompt; empty leaves
	// that as it is.
	Prompt string

	// Command is called once with the command that is about to be started. What it
	// refers to must not be changed.
	Command func(Command)

	// Started is called once the agent's process is there, before any of its
	// output is read.
	Started func(Process)

	// Stdout and Stderr get the agent's raw output before the caller does, each
	// on one goroutine.
	Stdout io.Writer
	Stderr io.Writer

	// Events gets every event before the caller does, on the goroutine of Stdout;
	// the event is valid only during the call.
	Events func(*Event) error

	// Message is called with each message that the agent of a session has got, the
	// first one included. It may be called while Events is.
	Message func(text string) error

	// End is called exactly once when the run is over and nothing of it is left,
	// after all other functions have returned, with what the caller is about to be
	// told. Its error takes the place of none. It must return when ctx is done: the
	// end of a run does not wait longer for its records.
	End func(ctx context.Context, result Result, err error) error
}

// A Process is an agent's process.
type Process struct {
	PID int
	// Identity tells it from every other process of any time and machine.
	Identity string
}

// A Place says where a run belongs among others. It is for a [Recorder]; nothing
// else reads it. Empty fields are left to the recorder.
type Labels struct {
	Project string `json:"project,omitempty"`
	Task    string `json:"task,omitempty"`
	// Parent is the ID of the run that started this one.
	Parent string `json:"parent,omitempty"`
	// Previous is the ID of the run before this one that had the same purpose, for
	// example that of a runtime which had no quota left.
	Previous string `json:"previous,omitempty"`
}
