package control

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/busdk/bus-agent/internal/unix"
)

// maxSocketName is how long the name of a socket may be, in bytes: the least of
// the systems', less the byte that ends it.
const maxSocketName = 103

// socketPath returns the socket of the session in folder. It depends on nothing else,
// so that every client finds it.
func socketPath(folder string) string {
	path := filepath.Join(folder, "socket")
	if len(path) <= maxSocketName {
		return path
	}
	sum := sha256.Sum256([]byte(folder))
	return filepath.Join("/tmp", "bus-agent-"+strconv.Itoa(os.Getuid()), hex.EncodeToString(sum[:8]))
}

// listenTries bounds how often the end of another session may remove the folder that a
// socket is about to be in.
const listenTries = 100

// listen listens on the socket path, and replaces what exists, in a folder that only
// the user can open.
func listen(path string) (l net.Listener, err error) {
	for range listenTries {
		if l, err = listenOnce(path); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return l, err
}

func listenOnce(path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := checkPrivate(dir); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// checkPrivate returns why others than this user can open a folder.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*unix.SysStat)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not a folder of this user alone", dir)
	}
	return nil
}

// removeSocket removes what is left of a socket, and its folder where that is for
// sockets alone and empty.
func removeSocket(path, folder string) {
	os.Remove(path) // there may be none
	if dir := filepath.Dir(path); dir != folder {
		os.Remove(dir) // others may be in it
	}
}
