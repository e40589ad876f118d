package process

import (
	"os"

	"golang.org/x/sys/unix"
)

func bootID() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid")
	return id
}

// pidNamespace is empty: there is one only.
func pidNamespace() string { return "" }

func ownStart() uint64 {
	p, _ := readProcess(os.Getpid())
	return p.born
}

func ownSession() int {
	session, _ := unix.Getsid(0)
	return session
}

// This system has nothing that a process hands down and would not lose by
// accident.

func newMark(bool) uint64          { return 0 }
func setMark(int, uint64) bool     { return false }
func ownMark() uint64              { return 0 }
func markOwner(uint64) (int, bool) { return 0, false }
func markedBy(uint64) (int, bool)  { return 0, false }

func (r *run) markEarly() {}
