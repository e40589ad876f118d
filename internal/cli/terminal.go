package cli

import (
	"os"

	"golang.org/x/term"
)

// TerminalOf says what standard output and standard error are connected to.
func TerminalOf(stdout, stderr *os.File) Terminal {
	t := Terminal{Stderr: isTerminal(stderr)}
	out, outErr := stdout.Stat()
	err, errErr := stderr.Stat()
	t.SameFile = outErr == nil && errErr == nil && os.SameFile(out, err)
	t.SameTerminal = t.SameFile && t.Stderr
	return t
}

// terminalSize returns the size of a terminal, zero where it is unknown. Fd would
// end the deadlines of f.
func terminalSize(f *os.File) (width, height int) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, 0
	}
	_ = conn.Control(func(fd uintptr) { width, height, _ = term.GetSize(int(fd)) })
	return width, height
}
