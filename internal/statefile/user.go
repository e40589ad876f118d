package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/unix"
)

// UserDir returns the folder for the state called name of the user described by
// environ: bus-agent/name in XDG_STATE_HOME or, if that is not an absolute path, in
// ~/.local/state.
func UserDir(environ []string, name string) (string, error) {
	base, _ := agent.LookupEnv(environ, "XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, _ := agent.LookupEnv(environ, "HOME")
		if !filepath.IsAbs(home) {
			return "", fmt.Errorf("no folder for the state of %s: neither XDG_STATE_HOME nor HOME is an absolute path", name)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "bus-agent", name), nil
}

// CheckWritable returns an error if files cannot be made in the directory at path, or
// the directory cannot be made. It makes nothing.
func CheckWritable(path string) error {
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir):
			continue // it would be made
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a directory", dir)
		}
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		return nil
	}
}
