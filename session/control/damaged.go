package control

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/session"
)

// damagedTime bounds the question for the entry of a session whose file is damaged.
const damagedTime = time.Second

// damaged returns the entry of a session that is running although its file, with the
// given name, is damaged. The process that holds it knows the entry; where it does not
// answer, the entry has no more than an ID.
func (s *Store) damaged(names []fs.DirEntry, file string, problem error) (Entry, bool) {
	if errors.Is(problem, errNewer) {
		return Entry{}, false
	}
	for _, name := range names {
		folder := name.Name()
		if !name.IsDir() || fileName(folder) != file && folder != strings.TrimSuffix(file, entrySuffix) {
			continue
		}
		e := Entry{SessionID: folder, Folder: folder, State: session.StateDamaged, version: entryVersion}
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
