package fallback

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/statefile"
)

// How long a runtime rests unless it is said.
const (
	QuotaCooldown          = 15 * time.Minute
	AuthenticationCooldown = 5 * time.Minute
)

// A Rest says that runs with fallback leave a runtime out as long as they have
// another one.
type Cooldown struct {
	Runtime string    `json:"runtime"` // token
	Kind    string    `json:"kind"`    // of the error, as agent.KindOf says it
	Reason  string    `json:"reason"`  // the error in words
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
}

// lasts reports whether the runtime rests at the given time. A clock that was set
// back ends it.
func (r Cooldown) active(now time.Time) bool { return !now.Before(r.Since) && now.Before(r.Until) }

// String says of the runtime until when it rests and why, in local time.
func (r Cooldown) String() string {
	layout := "15:04:05"
	if !sameDay(r.Since, r.Until) {
		layout = "2006-01-02 15:04:05"
	}
	return fmt.Sprintf("rests until %s (%s)", r.Until.Local().Format(layout), r.Kind)
}

func sameDay(a, b time.Time) bool {
	return a.Local().Format(time.DateOnly) == b.Local().Format(time.DateOnly)
}

// A Store keeps what rests in a folder, one file a runtime, for all processes of
// the user. The last writer wins. Its methods may be called by several goroutines
// at once.
type Cooldowns struct{ dir string }

// DefaultDir returns the folder of the state of rests: resting below
// $XDG_STATE_HOME/bus-agent, or below ~/.local/state/bus-agent.
func DefaultDir(environ []string) (string, error) {
	return agent.StateDir(environ, "resting")
}

// NewStore returns a store over a directory, absolute, which is made when something
// is written.
func NewCooldowns(dir string) *Cooldowns { return &Cooldowns{dir} }

// Load returns the rest of the runtime with the given token, as long as it lasts.
func (s *Cooldowns) Get(token string, now time.Time) (rest Cooldown, ok bool, err error) {
	path, err := s.path(token)
	if err != nil {
		return Cooldown{}, false, err
	}
	text, err := statefile.Read(path, maxCooldown)
	if errors.Is(err, fs.ErrNotExist) {
		return Cooldown{}, false, nil
	}
	if err == nil {
		err = s.checkDir()
	}
	if err == nil {
		rest, err = parseCooldown(text, token)
	}
	if err != nil {
		return Cooldown{}, false, fmt.Errorf("%s: %w", path, withoutPath(err))
	}
	return rest, rest.active(now), nil
}

// List returns all that rests, by token. An error says what could not be read; what
// could is returned with it.
func (s *Cooldowns) List(now time.Time) ([]Cooldown, error) {
	dir, err := statefile.OpenDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, more, err := dir.Entries(maxCooldowns)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var list []Cooldown
	errs := []error{err}
	if more {
		errs = append(errs, fmt.Errorf("%s has more than %d files; those beyond are not read", s.dir, maxCooldowns))
	}
	for _, entry := range entries {
		token, ok := strings.CutSuffix(entry.Name(), suffix)
		if !ok {
			continue
		}
		rest, ok, err := s.Get(token, now)
		if err != nil {
			errs = append(errs, err)
		} else if ok {
			list = append(list, rest)
		}
	}
	return list, errors.Join(errs...)
}

// Put lets a runtime rest.
func (s *Cooldowns) Put(rest Cooldown) error {
	path, err := s.path(rest.Runtime)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(cooldownFile{cooldownVersion, rest}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if err := s.checkDir(); err != nil {
		return err
	}
	return statefile.Replace(path, append(text, '\n'))
}

// Wake ends the rest of a runtime and reports whether there was one.
func (s *Cooldowns) Clear(token string) (bool, error) {
	path, err := s.path(token)
	if err != nil {
		return false, err
	}
	err = os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// checkDir refuses a folder that others can write to: what is in it decides what
// runs.
func (s *Cooldowns) checkDir() error {
	info, err := os.Stat(s.dir)
	if err == nil && info.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("others can write to %s; take that right away: chmod go-w", s.dir)
	}
	return err
}

const suffix = ".json"

// path returns the file of a runtime.
func (s *Cooldowns) path(token string) (string, error) {
	if token == "" || strings.Trim(token, "abcdefghijklmnopqrstuvwxyz0123456789-:") != "" {
		return "", fmt.Errorf("%q is no name of a runtime", token)
	}
	return filepath.Join(s.dir, token+suffix), nil
}

// restVersion is the version of the form of files.
const cooldownVersion = 1

// restFile is the form of a rest in a file.
type cooldownFile struct {
	Version int `json:"version"`
	Cooldown
}

// maxRest is the longest file, in bytes; what is written is far below it. maxRests
// is how many files of the folder are read.
const maxCooldown, maxCooldowns = 64 << 10, 10_000

// parseRest reads the rest of a runtime from its file.
func parseCooldown(text []byte, token string) (Cooldown, error) {
	var f cooldownFile
	if err := json.Unmarshal(text, &f); err != nil {
		return Cooldown{}, fmt.Errorf("it says of no runtime that it rests: %w", err)
	}
	switch {
	case f.Version != cooldownVersion:
		return Cooldown{}, fmt.Errorf("it has version %d, this program knows %d", f.Version, cooldownVersion)
	case f.Runtime != token:
		return Cooldown{}, fmt.Errorf("it is about runtime %q", f.Runtime)
	case f.Kind != agent.KindOf(agent.ErrQuota) && f.Kind != agent.KindOf(agent.ErrAuthentication):
		return Cooldown{}, fmt.Errorf("%q is no reason to rest", f.Kind)
	case !f.Since.Before(f.Until):
		return Cooldown{}, errors.New("it ends before it begins")
	}
	return f.Cooldown, nil
}

// withoutPath strips operation and path, which stand before it already.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
