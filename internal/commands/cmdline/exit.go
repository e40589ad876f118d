package cmdline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/structured"
)

// The exit codes of the program.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// exit reports err and returns the exit code for it.
func (prog *Program) exit(err error) int {
	prog.Screen.Clear()
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errReaderGone):
		return exitFailure
	case errors.Is(err, agent.ErrUsage):
		prog.Screen.fail(shorten(err.Error()))
		return exitUsage
	}
	prog.Screen.fail(prog.Describe(err))
	return exitFailure
}

// Describe returns the text of a failure, followed by advice and by the last lines of
// the agent.
func (prog *Program) Describe(err error) string {
	var b strings.Builder
	text := err.Error()
	if invalid, ok := errors.AsType[*structured.InvalidError](err); ok && len(invalid.Violations) > 1 {
		text = strings.Replace(text, " "+invalid.Violations.Error(), "\n  "+strings.Join(invalid.Violations, "\n  "), 1)
	}
	b.WriteString(shorten(text))
	switch {
	case errors.Is(err, agent.ErrIdleTimeout):
		b.WriteString("\n  allow more time with --idle-timeout")
	case errors.Is(err, agent.ErrTimeout):
		b.WriteString("\n  allow more time with --timeout, BUS_AGENT_TIMEOUT or \"" + Name + " set timeout\"")
	case errors.Is(err, agent.ErrAuthentication):
		var rt registry.Runtime
		if e, ok := errors.AsType[*agent.Error](err); ok {
			rt, _ = prog.RuntimeOf(e.Runtime)
		}
		b.WriteString("\n  " + LoginHint(rt))
	}
	if u, ok := errors.AsType[*Unseen](err); ok {
		writeLastLines(&b, "the agent's text", u.Text)
	}
	writeLastLines(&b, "last lines of its standard error", StderrOf(err))
	return b.String()
}

// LoginHint says how to give a runtime credentials.
func LoginHint(rt registry.Runtime) string {
	names := strings.Join(rt.TokenEnv, " or ")
	switch {
	case rt.TokenOnly && names == "":
		return "set the variable of its token"
	case rt.TokenOnly:
		return "set " + names + " to a valid token"
	case names == "":
		return "log in with its own CLI"
	}
	return "log in with its own CLI, or set " + names
}

// shorten takes the middle out of every long line. A message quotes what was given, and
// that can be a whole file.
func shorten(text string) string {
	const most = 1000
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if n := len(line); n > most {
			lines[i] = strings.ToValidUTF8(line[:most/2], "") + fmt.Sprintf(" ...[%d bytes]... ", n-most) + strings.ToValidUTF8(line[n-most/2:], "")
		}
	}
	return strings.Join(lines, "\n")
}

func writeLastLines(b *strings.Builder, title, text string) {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	b.WriteString("\n  " + title + ":")
	for _, line := range lines[max(0, len(lines)-10):] {
		b.WriteString("\n    " + line)
	}
}

// Unseen is a failure after which the agent's text was not shown.
type Unseen struct {
	Err  error
	Text string
}

func (u *Unseen) Error() string { return u.Err.Error() }
func (u *Unseen) Unwrap() error { return u.Err }

// A Failure says what could not be done, and why.
type Failure struct {
	Text string
	Err  error
}

func (f *Failure) Error() string { return f.Text + ": " + f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Failures are several failures of a command, each reported on a separate line.
type Failures []error

func (f Failures) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "\n"+Name+": ")
}

func (f Failures) Unwrap() []error { return f }

// StderrOf returns the tail of the agent's standard error that err holds.
func StderrOf(err error) string {
	if exit, ok := errors.AsType[*agent.ExitError](err); ok {
		return exit.Stderr
	}
	return ""
}

// CanceledBy returns the error of StoppedBy in place of any other when ctx has ended.
func CanceledBy(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, errReaderGone) {
		return StoppedBy(ctx)
	}
	return err
}

// sayStopped returns the error of StoppedBy in place of one that only says that ctx has
// ended.
func sayStopped(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*agent.Error](err); !ok && errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return StoppedBy(ctx)
	}
	return err
}

// StoppedBy returns the error of a command that the end of ctx stopped.
func StoppedBy(ctx context.Context) error {
	return &agent.Error{Kind: agent.ErrCanceled, Err: fmt.Errorf("stopped: %w", context.Cause(ctx))}
}

// Cause returns an error of the file system without its operation and path.
func Cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// NoRuntime returns the first line of the error that no runtime is available.
func NoRuntime(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(first, "; install or enable one of:")
}
