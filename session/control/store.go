package control

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
	"unicode"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/session"
)

// A Store keeps an entry for each session in a folder that only the user can read,
// and a folder with the log and socket of each served session. Each entry is a
// separate file that is replaced whole, so neither a crash nor another process leaves
// half of one. Its methods may be called by any number of goroutines and processes at
// once.
//
// A file that cannot be read, or that a newer version has written, is never
// overwritten: List reports it.
type Store struct {
	dir string
}

// DefaultDir returns the state folder of the user described by environ:
// bus-agent/sessions in XDG_STATE_HOME, or in ~/.local/state.
func DefaultDir(environ []string) (string, error) {
	return statefile.UserDir(environ, "sessions")
}

// userStore returns the Store of the user described by environ.
func userStore(environ []string) (*Store, error) {
	dir, err := DefaultDir(environ)
	if err != nil {
		return nil, err
	}
	return NewStore(dir), nil
}

// NewStore returns a Store over a directory, an absolute path. The first
// write creates it.
func NewStore(dir string) *Store { return &Store{dir} }

// A Filter selects sessions. An empty field selects all.
type Filter struct {
	Runtime string // token, or ID for all of its variants
	Workdir string
	State   session.State
}

func (f Filter) selects(e Entry) bool {
	id, _, _ := strings.Cut(e.Runtime, ":")
	return (f.Runtime == "" || f.Runtime == e.Runtime || f.Runtime == id) &&
		(f.Workdir == "" || filepath.Clean(f.Workdir) == e.Workdir) &&
		(f.State == "" || f.State == e.State)
}

// A Problem is a file of the folder that cannot be used.
type Problem struct {
	Path string
	Err  error
}

func (p Problem) String() string { return p.Path + " is left alone: " + p.Err.Error() }

// List returns the entries that filter selects, most recently started first, and
// the files that cannot be used. A session whose process has died is reported as
// crashed; its stale socket is removed.
func (s *Store) List(filter Filter) ([]Entry, []Problem, error) {
	names, problems, err := s.entries()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("state of sessions: %w", err)
	}
	var entries []Entry
	old, unusable := s.readOld(names)
	problems = append(problems, unusable...)
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
			if e, ok := s.damaged(names, name.Name(), err); ok {
				entries = append(entries, e)
			}
			continue
		}
		old.complete(&e)
		entries = append(entries, e)
	}
	entries = append(entries, old.rest()...)
	for i := range entries {
		s.settle(&entries[i])
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return !filter.selects(e) })
	slices.SortFunc(entries, func(a, b Entry) int {
		if c := b.Started.Compare(a.Started); c != 0 {
			return c
		}
		return strings.Compare(a.SessionID, b.SessionID)
	})
	return entries, problems, nil
}

// settle completes an entry by what can be seen of its processes.
func (s *Store) settle(e *Entry) {
	if e.Folder != "" && process.LifeOf(e.Owner) == process.Unknown {
		e.locked = statefile.Locked(s.lockFile(*e))
	}
	e.settle()
	if e.Folder != "" && e.State == session.StateCrashed {
		s.removeSocket(*e)
	}
}

// read reads the entry with an ID, as it is in its file.
func (s *Store) read(id string) (Entry, error) {
	e, err := readEntry(s.path(id))
	if err == nil && e.version > 1 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return e, err
	}
	// It may be one of an older program, which kept half of it elsewhere.
	names, _, listErr := s.entries()
	if listErr != nil {
		return e, err
	}
	old, _ := s.readOld(names)
	if err == nil {
		old.complete(&e)
		return e, nil
	}
	for _, other := range old.rest() {
		if other.SessionID == id {
			return other, nil
		}
	}
	return e, err
}

// Get returns the entry of the session with the given ID, or of the only session
// with that native ID. Otherwise the error matches ErrUnknown.
func (s *Store) Get(id string) (Entry, error) {
	e, err := s.read(id)
	switch {
	case err == nil:
		s.settle(&e)
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

// Find returns the session that label names: by its ID, its name, or the beginning
// of exactly one ID. If several sessions have the name, Find returns one that is
// running, or else the latest. If no session matches, the error matches ErrUnknown
// and is of kind agent.ErrUsage.
func (s *Store) Find(label string) (Entry, error) {
	list, _, err := s.List(Filter{})
	if err != nil {
		return Entry{}, err
	}
	var named, begins []Entry
	for _, e := range list {
		switch {
		case e.SessionID == label:
			return e, nil
		case label == "":
		case e.Name == label:
			named = append(named, e)
		case strings.HasPrefix(e.SessionID, label), e.Folder == label:
			begins = append(begins, e)
		}
	}
	for _, e := range named {
		if !e.State.Ended() {
			return e, nil
		}
	}
	switch {
	case len(named) > 0:
		return named[0], nil
	case len(begins) == 1:
		return begins[0], nil
	case len(begins) > 1:
		return Entry{}, agent.Usagef("%d sessions begin with %q; write more of the ID", len(begins), label)
	}
	return Entry{}, usage(ErrUnknown, "there is no session %q; \"session list --all\" lists all sessions", label)
}

// save writes an entry and replaces an existing one with the same ID.
func (s *Store) save(ctx context.Context, e Entry) error {
	return s.update(ctx, e.SessionID, func(old *Entry) error {
		*old = e
		return nil
	})
}

// update changes the entry with the given ID, while no other process can change any
// entry. change receives the entry, or an empty one if it does not exist. If change
// returns an error, update writes nothing and returns that error.
func (s *Store) update(ctx context.Context, id string, change func(*Entry) error) error {
	if err := checkID(id); err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	e, err := s.readBefore(id)
	if err != nil {
		return err
	}
	if err := change(&e); err != nil {
		return err
	}
	e.SessionID = id
	if err := s.write(e); err != nil {
		return err
	}
	s.removeOld(e)
	return nil
}

// checkID returns why a session cannot have an ID.
func checkID(id string) error {
	if id == "" || len(id) > maxID || strings.ContainsFunc(id, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return agent.Usagef("the session ID %q is not up to %d bytes of one line", id, maxID)
	}
	return nil
}

// maxID is the longest ID of a session, in bytes.
const maxID = 512

// remove removes the entry and the folder of a session. The store is locked.
func (s *Store) remove(e Entry) error {
	if e.Folder != "" {
		s.removeSocket(e)
		if err := os.RemoveAll(s.folder(e)); err != nil {
			return err
		}
	}
	if err := os.Remove(s.path(e.SessionID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// discard removes a session that did not come to be.
func (s *Store) discard(ctx context.Context, e Entry) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return s.remove(e)
}

// claim writes the entry of a session that starts, in place of the one that owner has
// written for it, "" for none. Where another session has its ID, one that the caller has
// not chosen is replaced. The name must be free. Of the served sessions that have ended
// the oldest are removed where there are many.
func (s *Store) claim(ctx context.Context, e *Entry, chosen bool, owner string) error {
	if err := checkID(e.SessionID); err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	before, err := s.readBefore(e.SessionID)
	for err == nil && before.SessionID != "" && !chosen && (owner == "" || before.Owner != owner) {
		if e.SessionID = newID(); e.Folder != "" {
			e.Folder = folderName(e.SessionID)
		}
		before, err = s.readBefore(e.SessionID)
	}
	if err != nil {
		return err
	}
	if owner == "" || before.Owner != owner || before.State != session.StateStarting {
		if err := before.inUse(); err != nil {
			return err
		}
	}
	var list []Entry
	if e.Name != "" || e.Folder != "" {
		if list, _, err = s.List(Filter{}); err != nil {
			return err
		}
	}
	if err := checkFree(list, *e); err != nil {
		return err
	}
	if before.Folder != "" && before.State.Ended() { // what happened then is not of this session
		_ = os.RemoveAll(s.folder(before))
	}
	ended := 0
	for _, old := range list { // the latest first
		if old.Folder == "" || !old.State.Ended() || old.SessionID == e.SessionID {
			continue
		}
		if ended++; ended > keptEnded && old.inUse() == nil {
			_ = s.remove(old) // what stays is removed the next time
		}
	}
	return s.write(*e)
}

// readBefore returns the entry that is about to be replaced, empty for none.
func (s *Store) readBefore(id string) (Entry, error) {
	e, err := s.read(id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return e, fmt.Errorf("%s is left alone: %w", s.path(id), err)
	}
	s.settle(&e)
	return e, nil
}

// keptEnded is how many served sessions that have ended are remembered.
const keptEnded = 100

// Prune removes the entries of sessions that ended before the given time, and
// returns them. For a crashed session the time of its start counts.
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
		if err := s.remove(e); err != nil {
			return removed, err
		}
		removed = append(removed, e)
	}
	return removed, nil
}

func (s *Store) path(id string) string { return filepath.Join(s.dir, fileName(id)) }

func (s *Store) folder(e Entry) string { return filepath.Join(s.dir, e.Folder) }

func (s *Store) lockFile(e Entry) string { return filepath.Join(s.folder(e), "lock") }

func (s *Store) logFile(e Entry) string { return filepath.Join(s.folder(e), "log") }

func (s *Store) socket(e Entry) string { return socketPath(s.folder(e)) }

// removeSocket removes what is left of the socket of a session.
func (s *Store) removeSocket(e Entry) { removeSocket(s.socket(e), s.folder(e)) }

// folderName returns the name of the folder of a new session.
func folderName(id string) string {
	if len(id) == idLength && beginsID(id) {
		return id
	}
	return strings.TrimSuffix(fileName(id), entrySuffix)
}

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
