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

// How long a cooldown lasts by default, and at most.
const (
	QuotaCooldown          = 15 * time.Minute
	AuthenticationCooldown = 5 * time.Minute
	MaxCooldown            = 30 * 24 * time.Hour
)

// A Cooldown is the time for which runs with fallback leave a runtime out while
// they have another one.
type Cooldown struct {
	Runtime string    `json:"runtime"` // token
	Kind    string    `json:"kind"`    // of the error; see agent.KindOf
	Reason  string    `json:"reason"`  // text of the error
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
}

// active reports whether the cooldown lasts at the given time. It does not before
// Since: the clock was set back then.
func (c Cooldown) active(now time.Time) bool { return !now.Before(c.Since) && now.Before(c.Until) }

// String returns the end and the kind of the cooldown, in local time, for example
// "in cooldown until 15:04:05 (quota)".
func (c Cooldown) String() string {
	layout := "15:04:05"
	since, until := c.Since.Local(), c.Until.Local()
	if since.Format(time.DateOnly) != until.Format(time.DateOnly) {
		layout = time.DateTime
	}
	return fmt.Sprintf("in cooldown until %s (%s)", until.Format(layout), c.Kind)
}

// Cooldowns keeps the cooldowns of a user's runtimes in a folder, one file for each.
// The last writer wins. Its methods may be called by several goroutines and
// processes at once.
type Cooldowns struct{ dir string }

// DefaultDir returns the folder of the user described by environ: resting below
// $XDG_STATE_HOME/bus-agent, or below ~/.local/state/bus-agent.
func DefaultDir(environ []string) (string, error) {
	return statefile.UserDir(environ, "resting")
}

// NewCooldowns returns the cooldowns in a folder, an absolute path. The first write
// creates it.
func NewCooldowns(dir string) *Cooldowns { return &Cooldowns{dir} }

// Get returns the cooldown of the runtime with the given token; ok reports whether
// it has one at the given time.
func (s *Cooldowns) Get(token string, now time.Time) (c Cooldown, ok bool, err error) {
	path, err := s.path(token)
	if err != nil {
		return Cooldown{}, false, err
	}
	text, err := statefile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Cooldown{}, false, nil
	}
	if err == nil {
		err = s.checkDir()
	}
	if err == nil {
		c, err = parseCooldown(text, token)
	}
	if err != nil {
		return Cooldown{}, false, fmt.Errorf("%s: %w", path, withoutPath(err))
	}
	return c, c.active(now), nil
}

// List returns the cooldowns at the given time, by token. An error reports what
// could not be read; the list holds the others.
func (s *Cooldowns) List(now time.Time) ([]Cooldown, error) {
	dir, err := statefile.OpenDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, more, err := dir.Entries(maxFiles)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var list []Cooldown
	errs := []error{err}
	if more {
		errs = append(errs, fmt.Errorf("%s has more than %d files; only as many are read", s.dir, maxFiles))
	}
	for _, entry := range entries {
		token, ok := strings.CutSuffix(entry.Name(), suffix)
		if !ok {
			continue
		}
		c, ok, err := s.Get(token, now)
		if err != nil {
			errs = append(errs, err)
		} else if ok {
			list = append(list, c)
		}
	}
	return list, errors.Join(errs...)
}

// Put stores the cooldown of a runtime in place of the one before.
func (s *Cooldowns) Put(c Cooldown) error {
	path, err := s.path(c.Runtime)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(cooldownFile{fileVersion, c}, "", "  ")
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

// Clear removes the cooldown of a runtime and reports whether there was one.
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

// checkDir refuses a folder that others can write to: its files decide what runs.
func (s *Cooldowns) checkDir() error {
	info, err := os.Stat(s.dir)
	if err == nil && info.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("others can write to %s; run chmod go-w on it", s.dir)
	}
	return err
}

const (
	suffix      = ".json"
	fileVersion = 1
	maxFile     = 64 << 10 // bytes; a written file is far smaller
	maxFiles    = 10_000   // that List reads
)

// path returns the file of a runtime.
func (s *Cooldowns) path(token string) (string, error) {
	if token == "" || strings.Trim(token, "abcdefghijklmnopqrstuvwxyz0123456789-:") != "" {
		return "", fmt.Errorf("%q is not a runtime token", token)
	}
	return filepath.Join(s.dir, token+suffix), nil
}

// cooldownFile is the content of a file.
type cooldownFile struct {
	Version int `json:"version"`
	Cooldown
}

// parseCooldown reads the file of a runtime.
func parseCooldown(text []byte, token string) (Cooldown, error) {
	var f cooldownFile
	if err := json.Unmarshal(text, &f); err != nil {
		return Cooldown{}, fmt.Errorf("not a cooldown: %w", err)
	}
	switch {
	case f.Version != fileVersion:
		return Cooldown{}, fmt.Errorf("version %d; this program reads version %d", f.Version, fileVersion)
	case f.Runtime != token:
		return Cooldown{}, fmt.Errorf("it is about runtime %q", f.Runtime)
	case f.Kind != agent.KindOf(agent.ErrQuota) && f.Kind != agent.KindOf(agent.ErrAuthentication):
		return Cooldown{}, fmt.Errorf("an error of kind %q starts no cooldown", f.Kind)
	case !f.Since.Before(f.Until):
		return Cooldown{}, errors.New("it ends before it begins")
	case f.Until.Sub(f.Since) > MaxCooldown:
		return Cooldown{}, fmt.Errorf("it lasts longer than %d days", MaxCooldown/(24*time.Hour))
	}
	return f.Cooldown, nil
}

// withoutPath removes operation and path from an error.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
