package control

import (
	"net"
	"os"
)

// A peer is the process at the other end of a socket, as the system reports it: the
// one that connected or that listens.
type peer struct {
	uid int
	pid int // 0 if it is not known here
}

// peerOf returns the peer of conn. Without one ok is false.
func peerOf(conn net.Conn) (p peer, ok bool) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return p, false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return p, false
	}
	var failed error
	err = raw.Control(func(fd uintptr) { p, failed = socketPeer(int(fd)) })
	return p, err == nil && failed == nil
}

// isOwnPeer reports whether the peer of conn is a process of this user.
func isOwnPeer(conn net.Conn) bool {
	p, ok := peerOf(conn)
	return ok && p.uid == os.Geteuid()
}
