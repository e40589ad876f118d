package process

import (
	"bytes"
	"errors"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

var errNoTable = errors.New("processes cannot be looked at")

// canSee reports whether processes can be looked at by their PID.
func canSee() bool { return true }

// sameUser reports whether a process runs as the user of this process.
func sameUser(pid int) bool {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && int(info.Eproc.Pcred.P_ruid) == unix.Getuid() && int(info.Eproc.Ucred.Uid) == unix.Geteuid()
}

// programNames returns the names by which a process is known: those that its
// executable and its first two arguments end in.
func programNames(pid int) (names []string) {
	for arg := range bytes.SplitSeq(environment(pid), []byte{0}) {
		if len(arg) == 0 { // between the executable and the arguments
			continue
		}
		if len(names) == 3 {
			break
		}
		names = append(names, filepath.Base(string(arg)))
	}
	return names
}

// bornAt returns the time that a start time of a process is.
func bornAt(born uint64) time.Time { return time.UnixMicro(int64(born)) }
