package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// inheritedFile returns a file with the content, at its start, that has no name
// in any directory.
func inheritedFile(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("bus-agent", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // the second flag is from Linux 6.3
		fd, err = unix.MemfdCreate("bus-agent", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "memfd")
	return fill(f, content)
}
