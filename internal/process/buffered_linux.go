package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// buffered returns how many bytes are in a pipe.
func buffered(fd int) (int, error) {
	n, err := unix.IoctlGetUint32(fd, unix.TIOCINQ)
	return int(n), err
}

const (
	// roomyPipe is the size of the pipe for standard output, in bytes, the most
	// the kernel gives to everybody. Programs that do not wait for what they
	// wrote, like those of Node that end with process.exit, lose what is not in
	// the pipe when they end.
	roomyPipe = 1 << 20
	// roomyRuns is how many runs at once get one. The memory of the pipes of a
	// user is bounded, and beyond it every program gets tiny ones.
	roomyRuns = 32
)

// enlarge makes room in a pipe for output, as far as the system lets it.
func enlarge(pipe *os.File) {
	if runs.count() >= roomyRuns {
		return
	}
	if conn, err := pipe.SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, roomyPipe) })
	}
}
