package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/busdk/bus-agent/internal/unix"
)

// ErrRelativePath: the executable that PATH leads to is in a directory whose
// name is not absolute.
var ErrRelativePath = errors.New("relative PATH entry")

// LookPath finds an executable in the directories of path, the value of a PATH
// variable, and returns its absolute name. A name with a slash must be absolute
// and is only checked. Files that are not regular or not executable are passed
// over. When the first match is in a directory that is relative or empty, which
// means the current one, the error matches [ErrRelativePath]: the contents of the
// working directory must not decide what runs. When there is no match,
// the error matches fs.ErrNotExist.
func LookPath(name, path string) (string, error) {
	switch {
	case name == "":
		return "", fmt.Errorf("executable without a name: %w", fs.ErrNotExist)
	case filepath.IsAbs(name):
		if err := checkExecutable(name); err != nil {
			return "", err
		}
		return filepath.Clean(name), nil
	case strings.Contains(name, "/"):
		return "", fmt.Errorf("executable %q: give its absolute path, or its name alone to find it in PATH: %w", name, ErrRelativePath)
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if dir == "" {
			file = "./" + name
		}
		if checkExecutable(file) != nil {
			continue
		}
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("%s is in the %w %q, which depends on the current directory, and was not started: "+
				"make the entry absolute or remove it", name, ErrRelativePath, dir)
		}
		return file, nil
	}
	return "", fmt.Errorf("no executable %q in PATH: %w", name, fs.ErrNotExist)
}

func checkExecutable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file: %w", file, fs.ErrPermission)
	case info.Mode().Perm()&0o111 == 0 || unix.Access(file, unix.X_OK) != nil:
		return fmt.Errorf("%s is not executable: %w", file, fs.ErrPermission)
	}
	return nil
}

// Exec replaces this process by the program at path. It returns only if that fails.
func Exec(path string, args, env []string) error {
	err := syscall.Exec(path, append([]string{path}, args...), env)
	return &fs.PathError{Op: "exec", Path: path, Err: err}
}
