package sessions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
)

// A Store keeps an entry for each session in a folder, which only the user can
// read. Each is a file of its own that is replaced whole, so neither a crash nor
// another process leaves half of one. Its methods may be called by any number of
// goroutines and processes at once.
//
// A file that cannot be read, or that a newer version has written, is left alone:
// List reports it, and nothing is written over it.
type Store struct {
	dir string
}

// DefaultDir returns the state folder of the user that environ is of:
// bus-agent/sessions in XDG_STATE_HOME, or in ~/.local/state.
func DefaultDir(environ []string) (string, error) {
	return agent.StateDir(environ, "sessions")
}

// NewStore returns a Store over a directory, absolute, which is made when the
// first entry is written.
func NewStore(dir string) *Store { return &Store{dir} }

// Dir returns the directory.
func (s *Store) Dir() string { return s.dir }

// A Filter selects sessions. An empty field selects all.
type Filter struct {
	Runtime string // token, or ID for all of its variants
	WorkDir string
	State   State
}

func (f Filter) selects(e Entry) bool {
	id, _, _ := strings.Cut(e.Runtime, ":")
	return (f.Runtime == "" || f.Runtime == e.Runtime || f.Runtime == id) &&
		(f.WorkDir == "" || filepath.Clean(f.WorkDir) == e.WorkDir) &&
		(f.State == "" || f.State == e.State)
}

// A Problem is a file of the folder that cannot be used.
type Problem struct {
	Path string
	Err  error
}

func (p Problem) String() string { return p.Path + " is left alone: " + p.Err.Error() }

// List returns the entries that filter selects, those started last first, and
// the files that cannot be used. The entry of a session whose process has died is
// shown as crashed.
func (s *Store) List(filter Filter) ([]Entry, []Problem, error) {
	names, problems, err := s.entries()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("state of sessions: %w", err)
	}
	var entries []Entry
	for _, name := range names {
		if !strings.HasSuffix(name.Name(), entrySuffix) {
			continue
		}
		path := filepath.Join(s.dir, name.Name())
		e, err := readEntry(path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
			continue
		case err == nil && fileName(e.SessionID) != name.Name():
			err = fmt.Errorf("it is of session %q, which has another file", e.SessionID)
		}
		if err != nil {
			problems = append(problems, Problem{path, err})
			continue
		}
		e.settle()
		if filter.selects(e) {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		if c := b.Started.Compare(a.Started); c != 0 {
			return c
		}
		return strings.Compare(a.SessionID, b.SessionID)
	})
	return entries, problems, nil
}

// Get returns the entry of the session with this ID, or with this native ID where
// exactly one has that. Where there is none the error matches ErrUnknown.
func (s *Store) Get(id string) (Entry, error) {
	e, err := readEntry(s.path(id))
	switch {
	case err == nil:
		e.settle()
		return e, nil
	case !errors.Is(err, fs.ErrNotExist):
		return Entry{}, fmt.Errorf("session %s: %w", id, err)
	}
	entries, _, err := s.List(Filter{})
	if err != nil {
		return Entry{}, err
	}
	found := slices.DeleteFunc(entries, func(e Entry) bool { return e.NativeID != id })
	switch len(found) {
	case 0:
		return Entry{}, fmt.Errorf("%w: %s", ErrUnknown, id)
	case 1:
		return found[0], nil
	}
	return Entry{}, agent.Usagef("%d sessions have the native ID %s; name one by its own ID: %s, %s …", len(found), id, found[0].SessionID, found[1].SessionID)
}

// Save writes an entry, in place of the one with its ID.
func (s *Store) Save(ctx context.Context, e Entry) error {
	return s.Update(ctx, e.SessionID, func(old *Entry) error {
		*old = e
		return nil
	})
}

// Update changes the entry with an ID, while nobody else changes any. change gets
// the entry, or an empty one where there is none; when it returns an error nothing
// is written and that is returned.
func (s *Store) Update(ctx context.Context, id string, change func(*Entry) error) error {
	if id == "" || len(id) > maxID {
		return agent.Usagef("session ID %q is empty or longer than %d bytes", id, maxID)
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	e, err := readEntry(s.path(id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is left alone: %w", s.path(id), err)
	}
	e.settle()
	if err := change(&e); err != nil {
		return err
	}
	e.SessionID = id
	return s.write(e)
}

// maxID is the longest ID of a session, in bytes.
const maxID = 512

// Remove removes the entry of a session that has ended. It returns ErrRunning for
// one that runs, and ErrUnknown where there is none.
func (s *Store) Remove(ctx context.Context, id string) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	e, err := readEntry(s.path(id))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s", ErrUnknown, id)
	case err != nil:
		return fmt.Errorf("%s is left alone: %w", s.path(id), err)
	}
	e.settle()
	if err := e.inUse(); err != nil {
		return err
	}
	return os.Remove(s.path(id))
}

// discard removes the entry of a session that did not come to be.
func (s *Store) discard(ctx context.Context, id string) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return os.Remove(s.path(id))
}

// Prune removes the entries of sessions that ended before a time, and returns
// them. Of one that crashed nobody knows when; the time of its start counts.
func (s *Store) Prune(ctx context.Context, before time.Time) ([]Entry, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	entries, _, err := s.List(Filter{})
	if err != nil {
		return nil, err
	}
	s.removeParts()
	var removed []Entry
	for _, e := range entries {
		last := e.Ended
		if last.IsZero() {
			last = e.Started
		}
		if !e.State.Ended() || !last.Before(before) || e.inUse() != nil {
			continue
		}
		if err := os.Remove(s.path(e.SessionID)); err != nil {
			return removed, err
		}
		removed = append(removed, e)
	}
	return removed, nil
}

func (s *Store) path(id string) string { return filepath.Join(s.dir, fileName(id)) }

const entrySuffix = ".json"

// fileName returns the name of the file of a session: IDs may have characters,
// lengths and cases that file systems do not take or tell apart.
func fileName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:12]) + entrySuffix
}

var hostName = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	return name
})
