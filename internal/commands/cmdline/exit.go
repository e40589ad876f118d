package cmdline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/busdk/bus-agent/agent"
)

// The exit codes of the program.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// exit reports err and returns the exit code for it.
func (prog *Program) exit(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errReaderGone):
		// Nobody is left to hear of it.
		prog.Screen.Clear()
		return exitFailure
	case errors.Is(err, agent.ErrUsage):
		prog.Screen.fail(err.Error())
		return exitUsage
	default:
		prog.Screen.fail(prog.Describe(err))
		return exitFailure
	}
}

// describe returns the text of a failure with what helps to deal with it.
func (prog *Program) Describe(err error) string {
	var b strings.Builder
	b.WriteString(err.Error())
	switch {
	case errors.Is(err, agent.ErrIdleTimeout):
		b.WriteString("\n  give it longer with --idle-timeout, or leave the flag out")
	case errors.Is(err, agent.ErrTimeout):
		b.WriteString("\n  give it longer with --timeout, BUS_AGENT_TIMEOUT or \"" + Name + " set timeout\"")
	case errors.Is(err, agent.ErrAuthentication):
		b.WriteString("\n  " + prog.loginHint(err))
	}
	if said, ok := errors.AsType[*Unseen](err); ok {
		writeQuoted(&b, "it said", said.Text)
	}
	writeQuoted(&b, "last lines of its standard error", StderrOf(err))
	return b.String()
}

// loginHint says how the runtime that err is about gets its credentials.
func (prog *Program) loginHint(err error) string {
	const hint = "log in with its own CLI"
	e, ok := errors.AsType[*agent.Error](err)
	if !ok {
		return hint
	}
	rt, _, unknown := prog.Stored.Registry.ParseToken(e.Runtime)
	if unknown != nil || len(rt.TokenEnv) == 0 {
		return hint
	}
	return hint + ", or set " + strings.Join(rt.TokenEnv, " or ")
}

// writeQuoted adds the last lines of what somebody else wrote.
func writeQuoted(b *strings.Builder, what, text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return
	}
	b.WriteString("\n  " + what + ":")
	for _, line := range lines[max(0, len(lines)-10):] {
		b.WriteString("\n    " + line)
	}
}

// unseen is a failure with what the agent said, where that was not shown.
type Unseen struct {
	Err  error
	Text string
}

func (u *Unseen) Error() string { return u.Err.Error() }
func (u *Unseen) Unwrap() error { return u.Err }

// failure is an error with a text of its own that keeps its cause.
type Failure struct {
	Text string
	Err  error
}

func (f *Failure) Error() string { return f.Text + ": " + f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// stderrOf returns the tail of the agent's standard error that err holds.
func StderrOf(err error) string {
	if exit, ok := errors.AsType[*agent.ExitError](err); ok {
		return exit.Stderr
	}
	return ""
}

// canceledBy turns the end of ctx into the error of a command that it ended.
func CanceledBy(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, errReaderGone) {
		return StoppedBy(ctx)
	}
	return err
}

// stoppedBy is the error of a command that ctx ended.
func StoppedBy(ctx context.Context) error {
	return &agent.Error{Kind: agent.ErrCanceled, Err: fmt.Errorf("stopped: %w", context.Cause(ctx))}
}

// cause strips the operation and path from an error of the file system.
func Cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
