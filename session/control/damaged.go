package control

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/session"
)

// damagedTime bounds the request for the entry of a session whose file is damaged.
const damagedTime = time.Second

// begunFile is the name of the file with the entry of a session as it was when the session
// started, in the folder of the session.
const begunFile = "begun.json"

// damaged returns the entry of a session that is running although its file, with the
// given name, is damaged. The process that holds it knows the entry; if it does not
// answer, the entry is that of its start.
func (s *Store) damaged(names []fs.DirEntry, file string, problem error) (Entry, bool) {
	if errors.Is(problem, errNewer) {
		return Entry{}, false
	}
	for _, name := range names {
		folder := name.Name()
		if !name.IsDir() || fileName(folder) != file && folder != strings.TrimSuffix(file, entrySuffix) {
			continue
		}
		e := s.begun(folder, file)
		e.State, e.version = session.StateDamaged, entryVersion
		if !statefile.Locked(s.lockFile(e)) {
			return Entry{}, false // its process has ended
		}
		ctx, cancel := context.WithTimeout(context.Background(), damagedTime)
		defer cancel()
		c := &Client{Store: s}
		last, err := c.call(ctx, e, call{Operation: opShow}, Watcher{})
		if err == nil && last.Status != nil && fileName(last.Status.SessionID) == file && last.Status.Folder == folder {
			// The caller may end the process that the entry names.
			if owner, err := process.Identify(last.peer); err == nil && owner == last.Status.Owner {
				e = last.Status.Entry
				e.version = entryVersion
			}
		}
		e.State, e.Reason = session.StateDamaged, "its entry is damaged: "+problem.Error()
		return e, true
	}
	return Entry{}, false
}

// begun returns the entry of a session in a folder as it was when the session started.
// It is what [Store.keepBegun] kept, or no more than an ID.
func (s *Store) begun(folder, file string) Entry {
	e, err := readEntry(filepath.Join(s.dir, folder, begunFile))
	if err != nil || e.Folder != folder || fileName(e.SessionID) != file {
		return Entry{SessionID: folder, Folder: folder}
	}
	if process.LifeOf(e.Owner) != process.Alive { // another process has started it since
		e.Owner, e.OwnerPID, e.OwnerEnds = "", 0, false
	}
	return e
}

// keepBegun keeps the entry of a session that starts in its folder.
func (s *Store) keepBegun(e Entry) error {
	text, err := json.Marshal(entryFile{entryVersion, e})
	if err != nil {
		return err
	}
	return statefile.Replace(filepath.Join(s.folder(e), begunFile), text)
}

// put writes the entry of a session that this process holds, also in place of a damaged
// one.
func (s *Store) put(ctx context.Context, e Entry) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.write(e); err != nil {
		return err
	}
	s.removeOld(e)
	return nil
}
