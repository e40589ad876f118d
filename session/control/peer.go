package control

import (
	"net"
	"os"
)

// isOwnPeer reports whether the other side of a connection is a process of this
// user, as the system says.
func isOwnPeer(conn net.Conn) bool {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	own := false
	err = raw.Control(func(fd uintptr) {
		uid, err := peerUser(int(fd))
		own = err == nil && uid == os.Geteuid()
	})
	return err == nil && own
}
