package process

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A leader is a child of ours that is not reaped.
type leader struct {
	pid int
}

// forkLeader starts a child in a new session, and so in a new group. This
// system has no signal for the end of a parent.
func forkLeader(path string, argv []string, attr *syscall.ProcAttr) (leader, error) {
	attr.Sys = &syscall.SysProcAttr{Setsid: true}
	pid, err := syscall.ForkExec(path, argv, attr)
	return leader{pid: pid}, err
}

// wait returns when the child has exited. It does not reap it: wait4 would, and
// waitid reports stopped children here too.
func (l *leader) wait() {
	queue, err := unix.Kqueue()
	if err != nil {
		l.poll()
		return
	}
	defer unix.Close(queue)
	unix.CloseOnExec(queue)
	exit := make([]unix.Kevent_t, 1)
	unix.SetKevent(&exit[0], l.pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	exit[0].Fflags = unix.NOTE_EXIT
	events := make([]unix.Kevent_t, 1)
	for {
		n, err := unix.Kevent(queue, exit, events, nil)
		switch {
		case err == unix.EINTR:
		case err == unix.ESRCH: // it has exited already
			return
		case err != nil:
			l.poll()
			return
		case n > 0:
			return
		}
	}
}

// poll waits without a kernel queue, which only a lack of descriptors denies.
func (l *leader) poll() {
	for {
		if p, err := readProcess(l.pid); err != nil || p.dead {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// reap removes the exited child from the process table. It reports false when
// another part of the program, one that waits for any child, did so before.
func (l *leader) reap() (unix.WaitStatus, bool) {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(l.pid, &status, 0, nil)
		if err != unix.EINTR {
			return status, err == nil && got == l.pid
		}
	}
}
