package process

import (
	"sync"

	"github.com/busdk/bus-agent/internal/unix"
)

// reap removes a child that has exited from the process table. It does not
// wait, and reports false when it is not such a child.
func reap(pid int) (unix.WaitStatus, bool) {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(pid, &status, unix.WNOHANG)
		if err != unix.EINTR {
			return status, err == nil && got == pid
		}
	}
}

var adopting sync.Mutex

// reapAdopted reaps a dead member of a run that this process has adopted. One
// at a time: once it is reaped, its PID may be that of a child of ours that
// another part of the program waits for, so it is looked at once more before.
func reapAdopted(m process) {
	adopting.Lock()
	defer adopting.Unlock()
	seen, err := readProcess(m.pid)
	if err == nil && seen.born == m.born && seen.dead && seen.parent == self().pid && !runs.leads(m.pid) {
		reap(m.pid)
	}
}
