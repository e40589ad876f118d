package control

import "golang.org/x/sys/unix"

// peerUser returns the user of the process at the other end of a socket, as it was
// when the connection was made.
func peerUser(socket int) (uid int, err error) {
	cred, err := unix.GetsockoptXucred(socket, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
