package cli

import "os"

// TerminalOf says what standard output and standard error are connected to.
func TerminalOf(stdout, stderr *os.File) Terminal {
	t := Terminal{Stderr: isTerminal(stderr)}
	out, outErr := stdout.Stat()
	err, errErr := stderr.Stat()
	t.SameFile = outErr == nil && errErr == nil && os.SameFile(out, err)
	t.SameTerminal = t.SameFile && t.Stderr
	return t
}
