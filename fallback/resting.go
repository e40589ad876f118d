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
	QuotaRest          = 15 * time.Minute
	AuthenticationRest = 5 * time.Minute
)

// A Rest says that runs with fallback leave a runtime out as long as they have
// another one.
type Rest struct {
	Runtime string    `json:"runtime"` // token
	Kind    string    `json:"kind"`    // of the error, as agent.KindOf says it
	Reason  string    `json:"reason"`  // the error in words
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
}

// lasts reports whether the runtime rests at the given time. A clock that was set
// back ends it.
func (r Rest) lasts(now time.Time) bool { return !now.Before(r.Since) && now.Before(r.Until) }

// String says of the runtime until when it rests and why, in local time.
func (r Rest) String() string {
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
type Store struct{ dir string }

// DefaultDir returns the folder of the state of rests: resting below
// $XDG_STATE_HOME/bus-agent, or below ~/.local/state/bus-agent.
func DefaultDir(environ []string) (string, error) {
	return agent.StateDir(environ, "resting")
}

// NewStore returns a store over a directory, absolute, which is made when something
// is written.
func NewStore(dir string) *Store { return &Store{dir} }

// Load returns the rest of the runtime with the given token, as long as it lasts.
func (s *Store) Load(token string, now time.Time) (rest Rest, ok bool, err error) {
	path, err := s.path(token)
	if err != nil {
		return Rest{}, false, err
	}
	text, err := statefile.Read(path, maxRest)
	if errors.Is(err, fs.ErrNotExist) {
		return Rest{}, false, nil
	}
	if err == nil {
		err = s.checkDir()
	}
	if err == nil {
		rest, err = parseRest(text, token)
	}
	if err != nil {
		return Rest{}, false, fmt.Errorf("%s: %w", path, withoutPath(err))
	}
	return rest, rest.lasts(now), nil
}

// List returns all that rests, by token. An error says what could not be read; what
// could is returned with it.
func (s *Store) List(now time.Time) ([]Rest, error) {
	dir, err := statefile.OpenDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, more, err := dir.Entries(maxRests)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	var list []Rest
	errs := []error{err}
	if more {
		errs = append(errs, fmt.Errorf("%s has more than %d files; those beyond are not read", s.dir, maxRests))
	}
	for _, entry := range entries {
		token, ok := strings.CutSuffix(entry.Name(), suffix)
		if !ok {
			continue
		}
		rest, ok, err := s.Load(token, now)
		if err != nil {
			errs = append(errs, err)
		} else if ok {
			list = append(list, rest)
		}
	}
	return list, errors.Join(errs...)
}

// Put lets a runtime rest.
func (s *Store) Put(rest Rest) error {
	path, err := s.path(rest.Runtime)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(restFile{restVersion, rest}, "", "  ")
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
func (s *Store) Wake(token string) (bool, error) {
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
func (s *Store) checkDir() error {
	info, err := os.Stat(s.dir)
	if err == nil && info.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("others can write to %s; take that right away: chmod go-w", s.dir)
	}
	return err
}

const suffix = ".json"

// path returns the file of a runtime.
func (s *Store) path(token string) (string, error) {
	if token == "" || strings.Trim(token, "abcdefghijklmnopqrstuvwxyz0123456789-:") != "" {
		return "", fmt.Errorf("%q is no name of a runtime", token)
	}
	return filepath.Join(s.dir, token+suffix), nil
}

// restVersion is the version of the form of files.
const restVersion = 1

// restFile is the form of a rest in a file.
type restFile struct {
	Version int `json:"version"`
	Rest
}

// maxRest is the longest file, in bytes; what is written is far below it. maxRests
// is how many files of the folder are read.
const maxRest, maxRests = 64 << 10, 10_000

// parseRest reads the rest of a runtime from its file.
func parseRest(text []byte, token string) (Rest, error) {
	var f restFile
	if err := json.Unmarshal(text, &f); err != nil {
		return Rest{}, fmt.Errorf("it says of no runtime that it rests: %w", err)
	}
	switch {
	case f.Version != restVersion:
		return Rest{}, fmt.Errorf("it has version %d, this program knows %d", f.Version, restVersion)
	case f.Runtime != token:
		return Rest{}, fmt.Errorf("it is about runtime %q", f.Runtime)
	case f.Kind != agent.KindOf(agent.ErrQuota) && f.Kind != agent.KindOf(agent.ErrAuthentication):
		return Rest{}, fmt.Errorf("%q is no reason to rest", f.Kind)
	case !f.Since.Before(f.Until):
		return Rest{}, errors.New("it ends before it begins")
	}
	return f.Rest, nil
}

// withoutPath strips operation and path, which stand before it already.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
