package process

import "golang.org/x/sys/unix"

// isGone reports whether no process has the PID, also none that is hidden. A thread
// with that number is not a process, though kill would find it.
func isGone(pid int) bool { return unix.Tgkill(pid, pid, 0) == unix.ESRCH }

// signalProcess signals a process and reports whether it existed. A descriptor
// holds on to the process that has the PID while its start time is compared.
func signalProcess(p process, sig unix.Signal) bool {
	return signalIf(p.pid, sig, func() bool {
		seen, err := readProcess(p.pid)
		return err == nil && seen.born == p.born && !seen.dead
	})
}

// signalIf signals the process with a PID if it is the right one, and reports
// whether it did.
func signalIf(pid int, sig unix.Signal, right func() bool) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	switch err {
	case nil:
		defer unix.Close(fd)
	case unix.ENOSYS, unix.EPERM: // an old kernel, or a sandbox that forbids the call
		fd = -1
	default:
		return false
	}
	if !right() {
		return false
	}
	if fd < 0 {
		return unix.Kill(pid, sig) == nil
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0) == nil
}

// chase kills the members among the PIDs given out last, for a few milliseconds
// at most. A scan of the whole table takes longer than a process needs to fork
// and exit; this takes a tenth of it.
func chase(marked func(mark uint64) bool, proves func(process) bool) {
	const newest = 4
	var r reader
	for range 4 * rounds {
		last, ok := lastPID()
		if !ok {
			return
		}
		for pid := last; pid > last-newest; pid-- {
			mark := readMark(pid)
			if mark == 0 || !marked(mark) {
				continue
			}
			signalIf(pid, unix.SIGKILL, func() bool {
				p, err := r.read(pid, mark)
				return err == nil && !p.dead && proves(p)
			})
		}
	}
}
