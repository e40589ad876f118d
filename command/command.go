// Package command is the bus-agent program as a function, for builds with a
// custom set of runtimes:
//
//	package main
//
//	import (
//		"os"
//
//		"github.com/busdk/bus-agent/command"
//
//		_ "example.com/my-runtime"
//		_ "github.com/busdk/bus-agent/backends/codex"
//	)
//
//	func main() { os.Exit(command.Main("1.2.3")) }
//
// Every command knows the runtimes in the default registry: detect, run,
// format, config, completion. Library users want package runner.
package command

import (
	"cmp"
	"context"
	"io"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/delegation"
	"github.com/busdk/bus-agent/internal/commands"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/verify"
)

// buildVersion returns the version of the main module, which "go install MODULE@VERSION"
// sets; "" where it is unknown.
func buildVersion(info *debug.BuildInfo, ok bool) string {
	if !ok || info.Main.Version == "(devel)" {
		return ""
	}
	return info.Main.Version
}

// An Option configures the program.
type Option func(*settings)

type settings struct {
	recorders []agent.Recorder
	targets   func() []verify.Target
	serveMCP  ServeMCP
}

// A ServeMCP serves a delegation by the Model Context Protocol on the streams until stdin
// or ctx ends. Module bus-agent-mcp has one.
type ServeMCP func(ctx context.Context, s delegation.Settings, stdin io.Reader, stdout io.Writer) error

// WithMCP makes the command mcp call serve, which otherwise runs the program
// bus-agent-mcp. The last call counts.
func WithMCP(serve ServeMCP) Option {
	return func(s *settings) { s.serveMCP = serve }
}

// WithRecorder makes r record every run and session that the program starts.
// Several recorders are called in order; see [agent.Recorders].
func WithRecorder(r agent.Recorder) Option {
	return func(s *settings) { s.recorders = append(s.recorders, r) }
}

// WithTargets makes the command verify check the runtimes of the targets that list
// returns. The last call counts.
func WithTargets(list func() []verify.Target) Option {
	return func(s *settings) { s.targets = list }
}

// Main runs the program with the arguments, streams and environment of the process
// and returns its exit code: 0 for success, 1 for a failure, 2 for a usage error.
// While an agent runs, it adopts orphaned descendants and handles SIGINT, SIGTERM,
// SIGHUP and SIGQUIT: one of them ends the program within 8 seconds, whatever it is
// doing. version is what --version prints; empty means the version of the build.
func Main(version string, options ...Option) int {
	var o settings
	for _, option := range options {
		option(&o)
	}
	if !enoughFiles() {
		return 2
	}
	stderr := stream(os.Stderr, int(syscall.Stderr))
	watchdog := newWatchdog(stderr)
	dir, err := os.Getwd()
	if err != nil {
		dir = "." // a removed directory; what needs it reports that
	}
	executable, _ := os.Executable() // without it there are no sessions, which those commands say
	return commands.Main(context.Background(), &commands.Env{
		Args:        os.Args[1:],
		Stdin:       os.Stdin,
		Stdout:      stream(os.Stdout, int(syscall.Stdout)),
		Stderr:      stderr,
		Environ:     os.Environ(),
		Dir:         dir,
		Terminal:    commands.TerminalOf(os.Stdout, os.Stderr),
		Targets:     o.targets,
		ServeMCP:    o.serveMCP,
		Preferences: preferences.User(),
		Recorder:    agent.Recorders(o.recorders...),
		Begin:       watchdog.beginWork,
		Executable:  executable,
		Version:     cmp.Or(version, buildVersion(debug.ReadBuildInfo())),
	})
}
