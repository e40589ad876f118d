//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd && !windows

package preferences

import (
	"errors"
	"io/fs"
	"os"
)

// openWithoutWaiting and openNoLink are not available.
const openWithoutWaiting, openNoLink = 0, 0

// tryLock fails: without a lock, a write could undo another one.
func tryLock(*os.File) error { return errors.ErrUnsupported }

func syncDir(string) error { return nil }

func setOwner(*os.File, fs.FileInfo) {}
