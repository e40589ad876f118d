package cmdline

import (
	"context"
	"io"
	"path/filepath"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/delegation"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/verify"
)

// An Env is everything the program uses of the process it runs in. Nil streams are not
// allowed; every other field may be left out.
type Env struct {
	// Args are the arguments without the name of the program.
	Args []string

	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	// Environ is the environment, "NAME=value".
	Environ []string

	// Dir is the current directory, absolute. Relative paths start there.
	Dir string

	// Terminal says what the streams are connected to.
	Terminal Terminal

	// Registry holds the runtimes; nil is the default registry.
	Registry *registry.Registry

	// Targets returns how the command verify can run the CLIs of runtimes; nil for
	// none.
	Targets func() []verify.Target

	// Preferences is where persistent defaults are read from, and runtimes
	// described in JSON; nil for none. They are read once where they are a
	// runner.Snapshotter.
	Preferences runner.Preferences

	// Recorder records every run and session; nil for none.
	Recorder agent.Recorder

	// Begin, when not nil, is called once before an agent is started or standard
	// input is read. It returns the context of that work and a function that
	// is called after it. A program takes charge of signals there; commands
	// that answer at once do without.
	Begin func(context.Context) (context.Context, func())

	// ServeMCP, when not nil, is the command mcp: it serves the delegation by the Model
	// Context Protocol on the streams until stdin or ctx ends. Without it, the command
	// runs the program bus-agent-mcp.
	ServeMCP func(ctx context.Context, s delegation.Settings, stdin io.Reader, stdout io.Writer) error

	// Executable is the absolute path of the program, which calls Main again for
	// each session that it starts. Empty where it cannot.
	Executable string

	// Version is what --version prints; empty prints "devel".
	Version string
}

// A Terminal says which streams are terminals.
type Terminal struct {
	// Stdout and Stderr: standard output, standard error is a terminal.
	Stdout, Stderr bool
	// SameFile: both are the same file, pipe or terminal, so that what is written to both
	// appears twice.
	SameFile bool
}

func (e *Env) Getenv(name string) string {
	value, _ := agent.LookupEnv(e.Environ, name)
	return value
}

func (e *Env) registry() *registry.Registry {
	if e.Registry != nil {
		return e.Registry
	}
	return registry.Default()
}

// Abs returns path as seen from the current directory.
func (e *Env) Abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(e.Dir, path)
}
