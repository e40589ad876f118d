package process

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reopens: /dev/fd/3 is opened anew and so read from its start each time.
const reopens = true

// forkChain turns this process into one that forks n times, each time into a
// new session, and continues in the child: as fast as processes can flee. It ends
// with its parent's exit, so it calls nothing but the kernel.
//
//go:norace
func forkChain(n int) {
	for range n {
		pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if pid != 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	}
	unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
}

// forkPulse forks a child every 5 ms, n times, and then waits for a minute, as the
// children do: each holds the standard output open. Then they end, because no
// other process may be left to end them.
//
//go:norace
func forkPulse(n int) {
	pause := unix.Timespec{Nsec: 5e6}
	for range n {
		if pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); pid == 0 {
			break
		}
		unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
	}
	var begun, now unix.Timespec
	second := unix.Timespec{Sec: 1} // less when a signal comes
	unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&begun)), 0)
	for now = begun; now.Sec < begun.Sec+60; {
		unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&second)), 0, 0)
		unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&now)), 0)
	}
	unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
}

// held returns how many goroutines and descriptors this process has.
func held() [2]int {
	entries, err := os.ReadDir("/proc/self/fd")
	check(err)
	return [2]int{runtime.NumGoroutine(), len(entries)}
}
