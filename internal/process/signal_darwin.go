package process

import "golang.org/x/sys/unix"

// isGone reports whether no process has the PID, also none that is hidden.
func isGone(pid int) bool { return unix.Kill(pid, 0) == unix.ESRCH }

// signalProcess signals a process and reports whether it existed. Between the
// check of its start time and the signal its PID could in principle pass to another
// process: it would have to end, be reaped and have 99,998 others started within
// microseconds.
func signalProcess(m process, sig unix.Signal) bool {
	seen, err := readProcess(m.pid)
	return err == nil && seen.born == m.born && !seen.dead && unix.Kill(m.pid, sig) == nil
}
