package supervisor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
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
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/sessions"
)

// The states of an [Entry], and those that are found out about it.
const (
	StateStarting = "starting"
	StateLive     = "live"
	StateEnded    = "ended"
	// StateCrashed: the supervisor has ended without a word.
	StateCrashed = "crashed"
	// StateStopping: the session is ending.
	StateStopping = "stopping"
	// StateElsewhere: the supervisor is on another machine or in another container
	// that shares the folder.
	StateElsewhere = "elsewhere"
	// StateSilent: the supervisor does not answer.
	StateSilent = "not answering"
)

// An Entry is what is known of a session without asking its supervisor.
type Entry struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// CanonicalID is GT_SESSION_ID of the session, under which package sessions
	// keeps an entry of it in the same folder.
	CanonicalID string `json:"canonical_id"`

	Runtime   string    `json:"runtime"`
	Model     string    `json:"model"`
	SessionID string    `json:"session_id"` // the runtime's
	Workdir   string    `json:"workdir"`
	Started   time.Time `json:"started"`
	Ready     time.Time `json:"ready,omitzero"` // for the first time: the runtime's session exists
	Ended     time.Time `json:"ended,omitzero"`
	Reason    string    `json:"reason,omitempty"` // why it ended
	PID       int       `json:"pid"`              // of the supervisor
	// Stored is the state as the supervisor last wrote it, Supervisor its identity.
	Stored     string `json:"stored_state"`
	Supervisor string `json:"supervisor,omitempty"`
	// Settings are the caller's, for a session that is resumed.
	Settings json.RawMessage `json:"settings,omitempty"`

	// elsewhere says that a process holds the session that cannot be seen from
	// here.
	elsewhere bool
}

// Handle returns how people call the session.
func (e *Entry) Handle() string {
	if e.Name != "" {
		return e.Name
	}
	return e.ID
}

// State returns the state as far as it is known without asking the supervisor.
func (e *Entry) State() string {
	if e.Stored == StateEnded {
		return StateEnded
	}
	switch {
	case process.LifeOf(e.Supervisor) == process.Alive:
		return e.Stored
	case e.elsewhere:
		return StateElsewhere
	}
	return StateCrashed
}

// over reports whether there is no supervisor any more.
func (e *Entry) over() bool { s := e.State(); return s == StateEnded || s == StateCrashed }

// Live reports whether there is a supervisor.
func (e *Entry) Live() bool { s := e.State(); return s == StateStarting || s == StateLive }

// Sessions is the state folder.
type Sessions struct {
	Folder string // absolute

	stopLimit time.Duration // set by tests; 0 means the constant
}

// keptEnded is how many sessions that have ended are remembered.
const keptEnded = 100

func (s *Sessions) folder(id string) string { return filepath.Join(s.Folder, id) }

func (s *Sessions) lockFile(id string) string { return filepath.Join(s.folder(id), "lock") }

// store returns where package sessions keeps what it knows.
func (s *Sessions) store() *sessions.Store { return sessions.NewStore(s.Folder) }

// known returns what package sessions knows of a session.
func (s *Sessions) known(e *Entry) (sessions.Entry, error) {
	known, err := s.store().Get(e.CanonicalID)
	if err == nil && known.Owner != e.Supervisor {
		err = sessions.ErrUnknown // another session has that ID by now
	}
	return known, err
}

// describe completes a status by what is known of the agent.
func (s *Sessions) describe(st *Status) {
	known, err := s.known(&st.Entry)
	if err != nil {
		return // it has not begun
	}
	running, _ := known.Running() // it is of this machine
	st.Agent = Process{PID: known.PID, Identity: known.Process, Running: running, Started: known.Started, Ready: known.Ready}
}

func (s *Sessions) socket(id string) string { return socketPath(s.folder(id)) }

// isName reports whether s can name a session: [A-Za-z0-9][A-Za-z0-9._-]{0,63}.
func isName(s string) bool {
	if s == "" || len(s) > 64 || strings.IndexByte("._-", s[0]) >= 0 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && strings.IndexByte("._-", c) < 0 {
			return false
		}
	}
	return true
}

// idLength is how long IDs are.
const idLength = 8

// beginsID reports whether s can be an ID or the beginning of one.
func beginsID(s string) bool {
	return s != "" && len(s) <= idLength && strings.Trim(s, "0123456789abcdef") == ""
}

// checkName returns why a new session cannot have a name.
func checkName(name string) error {
	switch {
	case name == "":
		return nil
	case !isName(name):
		return agent.Usagef("%q is no name for a session: it is up to 64 letters, digits, dots, dashes and underscores", name)
	case beginsID(name):
		return agent.Usagef("%q is no name for a session: up to %d digits and letters a to f alone can be the ID of one", name, idLength)
	}
	return nil
}

// checkFree returns why a name cannot be given to a new session, beside those of
// list, which is sorted as by List.
func checkFree(list []Entry, name string) error {
	var named []Entry
	for _, e := range list {
		if name != "" && e.Name == name {
			named = append(named, e)
		}
	}
	for _, e := range named {
		if !e.over() {
			return agent.Usagef("there is a session %q already", name)
		}
	}
	for i, e := range named {
		if e.State() != StateCrashed || e.SessionID == "" {
			continue
		}
		handle := name
		if i < len(named)-1 {
			handle = e.ID // the name is that of a later one
		}
		return agent.Usagef("session %q has crashed: \"session resume %s\" goes on with it, \"session stop %s\" puts it down", name, handle, handle)
	}
	return nil
}

// Create makes the folder of a new session. Its name must not be that of a session
// that is live, or that has crashed and can be gone on with, nor look like an ID.
func (s *Sessions) Create(ctx context.Context, e Entry) (Entry, error) {
	if err := checkName(e.Name); err != nil {
		return Entry{}, err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return Entry{}, err
	}
	defer unlock()
	list, err := s.List()
	if err != nil {
		return Entry{}, err
	}
	if err := checkFree(list, e.Name); err != nil {
		return Entry{}, err
	}
	s.forget(list)
	var id [idLength / 2]byte
	for {
		rand.Read(id[:]) // never fails
		e.ID = hex.EncodeToString(id[:])
		if err = os.Mkdir(s.folder(e.ID), 0o700); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return Entry{}, err
	}
	if e.CanonicalID == "" {
		e.CanonicalID = e.ID
	}
	// Until the supervisor takes over, the session is this process's.
	e.Started, e.Stored, e.PID, e.Supervisor = time.Now().UTC(), StateStarting, os.Getpid(), process.Self()
	return e, s.Save(e)
}

// lock makes the state folder and keeps others from creating sessions.
func (s *Sessions) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		return nil, err
	}
	if err := checkPrivate(s.Folder); err != nil {
		return nil, err
	}
	l, err := statefile.LockPath(ctx, filepath.Join(s.Folder, "names.lock"))
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}

// forget removes the oldest sessions that have ended, where there are many.
func (s *Sessions) forget(list []Entry) {
	var ended []Entry
	for _, e := range list {
		if e.over() {
			ended = append(ended, e)
		}
	}
	for i := 0; i < len(ended)-keptEnded; i++ {
		s.Remove(ended[i].ID)
	}
}

// Remove removes what is known of a session.
func (s *Sessions) Remove(id string) {
	removeSocket(s.socket(id), s.folder(id))
	if e, err := s.Load(id); err == nil {
		if known, err := s.known(&e); err == nil {
			_ = s.store().Remove(context.Background(), known.SessionID) // unless its agent lives on
		}
	}
	os.RemoveAll(s.folder(id)) // what stays is removed the next time
}

// Save writes an entry, whole or not at all.
func (s *Sessions) Save(e Entry) error {
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	return statefile.Replace(filepath.Join(s.folder(e.ID), "entry.json"), append(text, '\n'))
}

// maxEntry bounds the file of an entry, in bytes, maxEntries how many sessions are
// read.
const maxEntry, maxEntries = 4 << 20, 100_000

// Load reads the entry of the session with an ID.
func (s *Sessions) Load(id string) (Entry, error) {
	text, err := statefile.Read(filepath.Join(s.folder(id), "entry.json"), maxEntry)
	if err != nil {
		return Entry{}, err
	}
	var e Entry
	if err := json.Unmarshal(text, &e); err != nil || e.ID != id {
		return Entry{}, fmt.Errorf("%s is no entry of a session", filepath.Join(s.folder(id), "entry.json"))
	}
	e.elsewhere = e.Stored != StateEnded && process.LifeOf(e.Supervisor) == process.Unknown && statefile.Locked(s.lockFile(id))
	return e, nil
}

// List returns the sessions that are known, oldest first. What a supervisor that
// crashed left of its socket is removed. A folder without an entry is none.
func (s *Sessions) List() ([]Entry, error) {
	folder, err := statefile.OpenDir(s.Folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	dirs, more, err := folder.Entries(maxEntries)
	if more {
		err = fmt.Errorf("%s has more than %d entries; remove what is not of a session", s.Folder, maxEntries)
	}
	var list []Entry
	for _, dir := range dirs {
		if !dir.IsDir() {
			continue
		}
		e, loadErr := s.Load(dir.Name())
		if loadErr != nil {
			continue
		}
		if e.State() == StateCrashed {
			removeSocket(s.socket(e.ID), s.folder(e.ID))
		}
		list = append(list, e)
	}
	slices.SortStableFunc(list, func(a, b Entry) int { return a.Started.Compare(b.Started) })
	return list, err
}

// Find returns the session that handle names: an ID, a name, or the beginning of
// one ID. Of several with a name it is the live one, or else the latest.
func (s *Sessions) Find(handle string) (Entry, error) {
	list, err := s.List()
	if err != nil {
		return Entry{}, err
	}
	var found, begins []Entry
	for _, e := range list {
		switch {
		case e.ID == handle:
			return e, nil
		case e.Name == handle && handle != "":
			found = append(found, e)
		case strings.HasPrefix(e.ID, handle) && handle != "":
			begins = append(begins, e)
		}
	}
	for _, e := range found {
		if !e.over() {
			return e, nil
		}
	}
	switch {
	case len(found) > 0:
		return found[len(found)-1], nil
	case len(begins) == 1:
		return begins[0], nil
	case len(begins) > 1:
		return Entry{}, agent.Usagef("%d sessions begin with %q; write more of the ID", len(begins), handle)
	}
	return Entry{}, agent.Usagef("there is no session %q; \"session list --all\" shows which there are", handle)
}
