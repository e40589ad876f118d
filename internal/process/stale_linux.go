package process

import (
	"bytes"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// canSee reports whether processes can be looked at by their PID.
func canSee() bool { return procUsable() && pidNamespace() != "" }

// sameUser reports whether a process runs as the user of this process.
func sameUser(pid int) bool {
	var buf [4096]byte
	for line := range bytes.Lines(readProc(pid, "status", buf[:])) {
		ids, ok := bytes.CutPrefix(line, []byte("Uid:"))
		if !ok {
			continue
		}
		fields := bytes.Fields(ids)
		return len(fields) == 4 && number(fields[0]) == unix.Getuid() && number(fields[1]) == unix.Geteuid()
	}
	return false
}

// programNames returns the names by which a process is known: that of its
// program and those its first two arguments end in.
func programNames(pid int) []string {
	var buf [4096]byte
	names := []string{strings.TrimSpace(string(readProc(pid, "comm", buf[:])))}
	return append(names, argumentNames(readProc(pid, "cmdline", buf[:]))...)
}

// argumentNames returns the last path elements of the first two arguments.
func argumentNames(args []byte) (names []string) {
	for arg := range bytes.SplitSeq(args, []byte{0}) {
		if len(arg) == 0 || len(names) == 2 {
			break
		}
		names = append(names, filepath.Base(string(arg)))
	}
	return names
}

// bornAt returns the time that a start time of a process is.
func bornAt(born uint64) time.Time {
	return time.Now().Add(-time.Duration(now().born-born) * clockTick)
}
