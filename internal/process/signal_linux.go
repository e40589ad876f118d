package process

import "golang.org/x/sys/unix"

// signal signals a member and reports whether it was there. A descriptor holds
// on to whoever has the PID while the mark or the start time says whether it
// still is the member.
func (r *run) signal(m process, sig unix.Signal) bool {
	fd, err := unix.PidfdOpen(m.pid, 0)
	switch err {
	case nil:
		defer unix.Close(fd)
	case unix.ENOSYS, unix.EPERM: // an old kernel, or a sandbox that forbids the call
		fd = -1
	default:
		return false
	}
	if r.mark == 0 || readMark(m.pid) != r.mark {
		if seen, err := readProcess(m.pid); err != nil || seen.born != m.born || seen.dead {
			return false
		}
	}
	if fd < 0 {
		return unix.Kill(m.pid, sig) == nil
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0) == nil
}

// chase kills the members of the run among the PIDs given out last, for a few
// milliseconds at most. A look at the whole table takes longer than a process
// needs to fork and exit; this takes a tenth of it.
func (r *run) chase() {
	if r.mark == 0 {
		return
	}
	const newest = 4
	for range 4 * rounds {
		last, ok := lastPID()
		if !ok {
			return
		}
		for pid := last; pid > last-newest; pid-- {
			if readMark(pid) == r.mark {
				r.signal(process{pid: pid}, unix.SIGKILL)
			}
		}
	}
}
