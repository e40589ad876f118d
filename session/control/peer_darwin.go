package control

import "golang.org/x/sys/unix"

func socketPeer(socket int) (peer, error) {
	cred, err := unix.GetsockoptXucred(socket, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return peer{}, err
	}
	pid, err := unix.GetsockoptInt(socket, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	return peer{uid: int(cred.Uid), pid: pid}, err
}
