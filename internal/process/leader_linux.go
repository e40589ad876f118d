package process

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A leader is a child of ours that is not reaped.
type leader struct {
	pid   int
	pidfd *os.File // nil when the kernel has none; becomes readable at the exit
}

// forkLeader starts a child in a new session, and so in a new group. It is
// asked to end when the calling thread ends.
func forkLeader(path string, argv []string, attr *syscall.ProcAttr) (leader, error) {
	pidfd := -1
	attr.Sys = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM, PidFD: &pidfd}
	pid, err := syscall.ForkExec(path, argv, attr)
	if err != nil {
		return leader{}, err
	}
	l := leader{pid: pid}
	if pidfd >= 0 {
		l.pidfd = polled(pidfd)
	}
	return l, nil
}

// wait returns when the child has exited. It does not reap it.
func (l *leader) wait() {
	if l.pidfd != nil {
		defer l.pidfd.Close()
		if conn, err := l.pidfd.SyscallConn(); err == nil {
			if err := conn.Read(func(uintptr) bool { return l.hasExited() }); err == nil {
				return
			}
		}
	}
	for unix.Waitid(unix.P_PID, l.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

func (l *leader) hasExited() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, l.pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err != nil && err != unix.EINTR || info.Signo != 0
}

// reap removes the exited child from the process table. It reports false when
// another part of the program, one that waits for any child, did so before.
func (l *leader) reap() (unix.WaitStatus, bool) {
	return reap(l.pid)
}
