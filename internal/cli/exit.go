package cli

import (
	"errors"
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
func (inv *invocation) exit(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errReaderGone):
		// Nobody is left to hear of it.
		inv.screen.clear()
		return exitFailure
	case errors.Is(err, agent.ErrUsage):
		inv.screen.fail(err.Error())
		return exitUsage
	default:
		inv.screen.fail(inv.describe(err))
		return exitFailure
	}
}

// describe returns the text of a failure with what helps to deal with it.
func (inv *invocation) describe(err error) string {
	var b strings.Builder
	b.WriteString(err.Error())
	switch {
	case errors.Is(err, agent.ErrIdleTimeout):
		b.WriteString("\n  give it longer with --idle-timeout, or leave the flag out")
	case errors.Is(err, agent.ErrTimeout):
		b.WriteString("\n  give it longer with --timeout, BUS_AGENT_TIMEOUT or \"" + program + " set timeout\"")
	case errors.Is(err, agent.ErrAuthentication):
		b.WriteString("\n  " + inv.loginHint(err))
	}
	if said, ok := errors.AsType[*unseen](err); ok {
		writeQuoted(&b, "it said", said.text)
	}
	writeQuoted(&b, "last lines of its standard error", stderrOf(err))
	return b.String()
}

// loginHint says how the runtime that err is about gets its credentials.
func (inv *invocation) loginHint(err error) string {
	const hint = "log in with its own CLI"
	e, ok := errors.AsType[*agent.Error](err)
	if !ok {
		return hint
	}
	rt, _, unknown := inv.stored.registry.ParseToken(e.Runtime)
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
type unseen struct {
	err  error
	text string
}

func (u *unseen) Error() string { return u.err.Error() }
func (u *unseen) Unwrap() error { return u.err }

// failure is an error with a text of its own that keeps its cause.
type failure struct {
	text string
	err  error
}

func (f *failure) Error() string { return f.text + ": " + f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// stderrOf returns the tail of the agent's standard error that err holds.
func stderrOf(err error) string {
	if exit, ok := errors.AsType[*agent.ExitError](err); ok {
		return exit.Stderr
	}
	return ""
}
