package cmdline

import (
	"os"

	"golang.org/x/term"
)

// TerminalOf says what standard output and standard error are connected to.
func TerminalOf(stdout, stderr *os.File) Terminal {
	t := Terminal{Stdout: IsTerminal(stdout), Stderr: IsTerminal(stderr)}
	out, outErr := stdout.Stat()
	err, errErr := stderr.Stat()
	t.SameFile = outErr == nil && errErr == nil && os.SameFile(out, err)
	return t
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) (is bool) {
	withDescriptor(f, func(fd int) { is = term.IsTerminal(fd) })
	return is
}

// TerminalSize returns the size of a terminal, zero where it is unknown.
func TerminalSize(f *os.File) (width, height int) {
	withDescriptor(f, func(fd int) { width, height, _ = term.GetSize(fd) })
	return width, height
}

// withDescriptor calls do with the descriptor of f, unless f is closed. Unlike f.Fd it leaves
// the deadlines and the blocking mode of f alone.
func withDescriptor(f *os.File, do func(fd int)) {
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { do(int(fd)) })
	}
}
