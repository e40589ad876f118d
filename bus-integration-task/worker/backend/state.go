package backend

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/busdk/bus-agent/agent"
)

// maxStateFile bounds a file that is copied into a state folder, in bytes.
const maxStateFile = 1 << 20

// stateEnv makes the folder for the state of the runtime and returns the variable that
// names it to the agent; nothing if the attempt has no state folder.
func (c *conversation) stateEnv() ([]string, error) {
	r := c.attempt
	home := c.runtime.Home
	if r.given.StateDir == "" || home.Env == "" {
		return nil, nil
	}
	if _, given := agent.LookupEnv(r.given.Env, home.Env); given {
		return nil, nil
	}
	dir := filepath.Join(r.given.StateDir, c.runtime.ID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state folder of %s: %w", c.token, err)
	}
	getenv := func(name string) string {
		value, _ := agent.LookupEnv(r.environ, name)
		return value
	}
	home.Logins = append(home.Logins[:len(home.Logins):len(home.Logins)], r.backend.StateFiles...)
	for i, from := range home.LoginFiles(getenv) {
		if err := refresh(from, filepath.Join(dir, filepath.FromSlash(home.Logins[i]))); err != nil {
			return nil, fmt.Errorf("state folder of %s: %w", c.token, err)
		}
	}
	return []string{home.Env + "=" + dir}, nil
}

// refresh copies a file that exists to a place where it is missing or older.
func refresh(from, to string) error {
	source, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	if there, err := os.Lstat(to); err == nil && !there.ModTime().Before(info.ModTime()) {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(source, maxStateFile+1))
	if err != nil {
		return err
	}
	if len(text) > maxStateFile {
		return fmt.Errorf("%s has more than %d bytes", from, maxStateFile)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(to), ".new-*") // readable by the user alone
	if err != nil {
		return err
	}
	_, err = part.Write(text)
	if err := errors.Join(err, part.Close()); err != nil {
		_ = os.Remove(part.Name())
		return err
	}
	return os.Rename(part.Name(), to)
}
