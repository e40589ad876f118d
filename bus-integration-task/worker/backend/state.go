package backend

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// maxStateFile bounds a file that is copied into a state folder, in bytes.
const maxStateFile = 1 << 20

// stateEnv makes the folder for the state of the runtime, with the user's logins and
// configuration, and returns the variable that names it to the agent; nothing if the
// attempt has no state folder.
func (c *conversation) stateEnv() ([]string, error) {
	r := c.attempt
	home := c.runtime.Home
	if r.given.StateDir == "" || home.Env == "" || !c.keepsState() {
		return nil, nil
	}
	if _, given := agent.LookupEnv(r.given.Env, home.Env); given {
		return nil, nil
	}
	dir := filepath.Join(r.given.StateDir, c.runtime.ID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state folder of %s: %w", c.token, err)
	}
	inv := registry.Invocation{Workdir: r.given.Workdir, Root: r.given.Workdir, Environ: r.environ}
	user := inv.UserHome(home)
	if user == "" {
		return []string{home.Env + "=" + dir}, nil
	}
	names := slices.Clone(home.Logins)
	if c.runtime.UserConfig.Files != nil {
		for _, file := range c.runtime.UserConfig.Files(inv) {
			if name, err := filepath.Rel(user, file.Path); err == nil && filepath.IsLocal(name) {
				names = append(names, filepath.ToSlash(name))
			}
		}
	}
	for _, name := range names {
		name = filepath.FromSlash(name)
		if err := refresh(filepath.Join(user, name), filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("state folder of %s: %w", c.token, err)
		}
	}
	return []string{home.Env + "=" + dir}, nil
}

// keepsState reports whether the sessions of the runtime can be kept in a state folder.
func (c *conversation) keepsState() bool {
	return !c.runtime.Home.FullAccess || c.attempt.given.Sandbox == DangerFullAccess
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
