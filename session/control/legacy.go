package control

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/session"
)

// Programs that wrote version 1 of entries kept more of the sessions that they
// served in a second file, entry.json in the folder of the session. It is read until
// the session is resumed or stopped, which writes the whole entry and removes it.

// oldName is the name of the second file.
const oldName = "entry.json"

// maxOld bounds that file, in bytes.
const maxOld = 4 << 20

// oldEntry is the second file.
type oldEntry struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	CanonicalID string    `json:"canonical_id"`
	Runtime     string    `json:"runtime"`
	Model       string    `json:"model"`
	NativeID    string    `json:"session_id"`
	Workdir     string    `json:"workdir"`
	Started     time.Time `json:"started"`
	Ready       time.Time `json:"ready"`
	Ended       time.Time `json:"ended"`
	Reason      string    `json:"reason"`
	PID         int       `json:"pid"` // of the owner
	State       string    `json:"stored_state"`
	Owner       string    `json:"supervisor"`
	Settings    Settings  `json:"settings"`
}

// oldEntries are the second files of a store, by the name of their folder.
type oldEntries map[string]oldEntry

// readOld reads the second files of the folders among names.
func (s *Store) readOld(names []fs.DirEntry) (found oldEntries, problems []Problem) {
	for _, name := range names {
		if !name.IsDir() || !isName(name.Name()) {
			continue
		}
		path := filepath.Join(s.dir, name.Name(), oldName)
		text, err := statefile.Read(path, maxOld)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var old oldEntry
		if err == nil {
			err = json.Unmarshal(text, &old)
		}
		if err == nil && (old.ID != name.Name() || old.CanonicalID == "") {
			err = errors.New("it is not an entry of a session")
		}
		if err != nil {
			problems = append(problems, Problem{path, err})
			continue
		}
		if found == nil {
			found = oldEntries{}
		}
		found[old.ID] = old
	}
	return found, problems
}

// complete adds to an entry what the second file of its session has.
func (found oldEntries) complete(e *Entry) {
	for id, old := range found {
		if e.version == 1 && old.CanonicalID == e.SessionID && old.Owner == e.Owner {
			old.mergeInto(e)
		}
		if e.Folder == id {
			delete(found, id)
		}
	}
}

// rest returns the entries of the sessions that have a second file alone.
func (found oldEntries) rest() (list []Entry) {
	for _, old := range found {
		e := Entry{SessionID: old.ID} // another one has the canonical ID by now
		old.mergeInto(&e)
		list = append(list, e)
	}
	return list
}

// mergeInto writes what the second file has into an entry.
func (o *oldEntry) mergeInto(e *Entry) {
	e.Name, e.Folder, e.NativeModel = o.Name, o.ID, o.Model
	e.Owner, e.OwnerPID, e.OwnerEnds = o.Owner, o.PID, true
	e.Settings = o.Settings.over(e.Settings)
	e.Runtime = o.Runtime
	e.NativeID, e.Host = cmp.Or(e.NativeID, o.NativeID), cmp.Or(e.Host, hostName())
	e.Started = o.Started
	if e.Ready.IsZero() {
		e.Ready = o.Ready
	}
	if o.State == "ended" {
		e.State, e.Ended, e.Reason = session.StateStopped, o.Ended, o.Reason
	} else if e.State == "" || e.State.Ended() {
		e.State = session.StateStarting
	}
}

// removeOld removes the second file of a session whose entry is whole now.
func (s *Store) removeOld(e Entry) {
	if e.Folder != "" {
		_ = os.Remove(filepath.Join(s.folder(e), oldName)) // one that stays adds nothing
	}
}
