package preferences

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// checkRegular returns an error if f is neither a regular file nor the null device.
// Reading or locking other files may block.
func checkRegular(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Mode().IsRegular() {
		return err
	}
	if null, err := os.Stat(os.DevNull); err == nil && os.SameFile(null, info) {
		return nil
	}
	return fmt.Errorf("%s %w", f.Name(), wrongType(info.Mode()))
}

// explainOpen returns an error that describes the file called name, if it is not a
// regular file, or else err, the error of opening it.
func explainOpen(name string, err error) error {
	info, statErr := os.Lstat(name)
	if statErr != nil || info.Mode().IsRegular() {
		return err
	}
	return fmt.Errorf("%s %w", name, wrongType(info.Mode()))
}

func wrongType(mode fs.FileMode) error {
	kind := "device"
	switch {
	case mode.IsDir():
		kind = "directory"
	case mode&fs.ModeSymlink != 0:
		kind = "symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		kind = "named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "socket"
	}
	return errors.New("is a " + kind + ", not a regular file; remove it")
}
