//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package preferences

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// openWithoutWaiting opens a named pipe without waiting for its other end.
// openNoLink fails to open a symbolic link.
const openWithoutWaiting, openNoLink = syscall.O_NONBLOCK, syscall.O_NOFOLLOW

// tryLock locks f until it is closed.
func tryLock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		default:
			return err
		}
	}
}

// syncDir flushes a rename in dir to disk. EINVAL and ENOTSUP mean that the file
// system cannot do that.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil // dir may be writable but not readable
	}
	defer d.Close()
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}

// setOwner gives f the owner of like, if permitted, so that a file written by the
// superuser for a user still belongs to the user.
func setOwner(f *os.File, like fs.FileInfo) {
	if stat, ok := like.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(stat.Uid), int(stat.Gid))
	}
}
