//go:build linux || darwin || freebsd

// Package unix makes the calls of Unix systems that the module needs, so that it compiles
// on Windows too. There no lock can be taken, and no folder counts as one's own.
package unix

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// NoFollow makes [os.OpenFile] fail for a symbolic link.
const NoFollow = syscall.O_NOFOLLOW

// ErrHeld is the error of Lock if another process, or another descriptor of this one,
// holds the lock.
var ErrHeld = errors.New("another process holds it")

// Lock takes the lock of a file without waiting, and makes the file if there is none. The
// kernel releases the lock when the last descriptor of the file is closed, so also after a
// crash.
func Lock(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrHeld
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Unlock releases a lock. Closing alone would not while a process that is being started
// has a copy of the descriptor.
func Unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// OwnGroup makes cmd the leader of a process group.
func OwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// SignalGroup sends a signal to the group of a command that was started in its own. If the
// group has ended, the error is [os.ErrProcessDone].
func SignalGroup(cmd *exec.Cmd, signal syscall.Signal) error {
	err := syscall.Kill(-cmd.Process.Pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// IsGone reports whether there is no process with the ID.
func IsGone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// FreeSpace returns how many bytes the user can write to the disk of a folder.
func FreeSpace(folder string) (int64, error) {
	var s syscall.Statfs_t
	err := syscall.Statfs(folder, &s)
	return max(0, int64(s.Bavail)) * int64(s.Bsize), err // below 0 on FreeBSD, where only the superuser has some left
}

// IsReadOnly reports whether a file is on a read-only mount.
func IsReadOnly(f *os.File) bool {
	const readOnly = 1 // ST_RDONLY of Linux and MNT_RDONLY of other systems
	var s syscall.Statfs_t
	return syscall.Fstatfs(int(f.Fd()), &s) == nil && s.Flags&readOnly != 0
}

// IsOwn reports whether this user owns a file.
func IsOwn(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// Changed returns when a file was written, renamed or got other attributes, whatever time of
// writing its owner has set.
func Changed(info os.FileInfo) time.Time {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if at := info.ModTime(); !ok || at.After(changed(stat)) {
		return at
	}
	return changed(stat)
}
