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
