package preferences

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

var procLockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

const (
	lockfileFailImmediately = 1
	lockfileExclusiveLock   = 2

	errorLockViolation = syscall.Errno(33)
)

// openWithoutWaiting and openNoLink are not needed: opening a file does not block.
const openWithoutWaiting, openNoLink = 0, 0

// tryLock locks f until it is closed.
func tryLock(f *os.File) error {
	var overlapped syscall.Overlapped
	ok, _, err := procLockFileEx.Call(f.Fd(), lockfileExclusiveLock|lockfileFailImmediately, 0,
		1, 0, uintptr(unsafe.Pointer(&overlapped)))
	switch {
	case ok != 0:
		return nil
	case errors.Is(err, errorLockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return errLocked
	default:
		return err
	}
}

// syncDir does nothing: Windows cannot flush a directory.
func syncDir(string) error { return nil }

// setOwner does nothing: files inherit their access from the directory.
func setOwner(*os.File, fs.FileInfo) {}
