package preferences

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// checkRegular returns why an open file is not one to read or lock: anything but a
// regular file, or the null device, can be waited for without end.
func checkRegular(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Mode().IsRegular() {
		return err
	}
	if null, err := os.Stat(os.DevNull); err == nil && os.SameFile(null, info) {
		return nil
	}
	return fmt.Errorf("%s %w", f.Name(), kind(info.Mode()))
}

// explain returns what has the name of a file, where that is why it was not opened.
func explain(name string, err error) error {
	info, statErr := os.Lstat(name)
	if statErr != nil || info.Mode().IsRegular() {
		return err
	}
	return fmt.Errorf("%s %w", name, kind(info.Mode()))
}

func kind(mode fs.FileMode) error {
	is := "device"
	switch {
	case mode.IsDir():
		is = "directory"
	case mode&fs.ModeSymlink != 0:
		is = "symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		is = "named pipe"
	case mode&fs.ModeSocket != 0:
		is = "socket"
	}
	return errors.New("is a " + is + ", not a regular file; remove it")
}
