package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// inputPipe returns a pipe that a child reads from and we write to.
func inputPipe() (child, ours *os.File, err error) {
	r, w, err := pipe()
	if err != nil {
		return nil, nil, err
	}
	return blocking(r), polled(w), nil
}

// outputPipe returns a pipe that we read from and a child writes to.
func outputPipe() (ours, child *os.File, err error) {
	r, w, err := pipe()
	if err != nil {
		return nil, nil, err
	}
	return polled(r), blocking(w), nil
}

func pipe() (r, w int, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return 0, 0, os.NewSyscallError("pipe2", err)
	}
	return ends[0], ends[1], nil
}

// blocking returns a file for the child's end. With os.Pipe it would be made ready
// for our own use first, which takes half a dozen system calls.
func blocking(fd int) *os.File { return os.NewFile(uintptr(fd), "pipe") }

// polled returns a file that is waited for without a thread. Its descriptor is of
// our own making, so there are no other flags.
func polled(fd int) *os.File {
	unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_NONBLOCK)
	return os.NewFile(uintptr(fd), "pipe")
}
