package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/internal/statefile"
)

// entryVersion is the version of the form of entries. Version 1 is read as well: see
// legacy.go.
const entryVersion = 2

// maxEntry is the longest file of an entry, in bytes.
const maxEntry = 64 << 10

// entryFile is the form of an entry in a file.
type entryFile struct {
	Version int `json:"version"`
	Entry
}

// errNewer is in the error of reading an entry that a newer program has written.
var errNewer = errors.New("a newer bus-agent has written it")

// readEntry reads the entry in a file.
func readEntry(path string) (Entry, error) {
	text, err := statefile.Read(path, maxEntry)
	if err != nil {
		return Entry{}, err
	}
	var f struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return Entry{}, fmt.Errorf("it is not an entry of a session: %w", err)
	}
	switch {
	case f.Version > entryVersion:
		return Entry{}, fmt.Errorf("%w: it has version %d, this program knows %d", errNewer, f.Version, entryVersion)
	case f.Version < 1:
		return Entry{}, fmt.Errorf("it is not an entry of a session: it has version %d", f.Version)
	}
	var e entryFile
	if err := json.Unmarshal(text, &e); err != nil {
		return Entry{}, fmt.Errorf("it is not an entry of a session: %w", err)
	}
	if e.SessionID == "" {
		return Entry{}, errors.New("it is not an entry of a session: it has no session_id")
	}
	if e.Folder != "" && !isName(e.Folder) {
		return Entry{}, fmt.Errorf("its folder cannot be called %q", e.Folder)
	}
	e.Entry.version = f.Version
	return e.Entry, nil
}

// write replaces the file of an entry. The folder exists and is locked.
func (s *Store) write(e Entry) error {
	text, err := json.MarshalIndent(entryFile{entryVersion, e}, "", "  ")
	if err != nil {
		return err
	}
	if len(text) >= maxEntry {
		return fmt.Errorf("the entry of session %s has %d bytes; the limit is %d", e.SessionID, len(text), maxEntry)
	}
	dir, err := statefile.OpenDir(s.dir)
	if err == nil {
		defer dir.Close()
		err = dir.Replace(fileName(e.SessionID), append(text, '\n'))
	}
	if err == nil {
		err = dir.Sync()
	}
	if err != nil {
		return fmt.Errorf("state of sessions: %w", err)
	}
	return nil
}

// maxEntries is how many files of the folder are read.
const maxEntries = 100_000

// entries returns what is in the folder, and as a problem that there is too much.
func (s *Store) entries() ([]fs.DirEntry, []Problem, error) {
	dir, err := statefile.OpenDir(s.dir)
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	list, more, err := dir.Entries(maxEntries)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if more {
		return list, []Problem{{s.dir, fmt.Errorf("it has more than %d files; those beyond are not read", maxEntries)}}, err
	}
	return list, nil, err
}

// removeParts removes what killed writers have left. The folder is locked, so no
// other process is writing.
func (s *Store) removeParts() {
	list, _, _ := s.entries()
	for _, entry := range list {
		if statefile.IsTemp(entry.Name()) {
			_ = os.Remove(filepath.Join(s.dir, entry.Name()))
		}
	}
}

// lock makes the folder, if there is none, and waits until no other process writes.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	if err := s.makeDir(); err != nil {
		return nil, err
	}
	l, err := statefile.LockPath(ctx, filepath.Join(s.dir, ".lock"))
	if err != nil {
		return nil, fmt.Errorf("state of sessions: %w", err)
	}
	return l.Release, nil
}

// makeDir makes the folder. One that others can write to is refused: what is in
// it decides what is resumed, and as whom.
func (s *Store) makeDir() error {
	if !filepath.IsAbs(s.dir) {
		return fmt.Errorf("state of sessions: %q is not an absolute path", s.dir)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("state of sessions: %w", err)
	}
	info, err := os.Stat(s.dir)
	if err != nil {
		return fmt.Errorf("state of sessions: %w", err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("state of sessions: others can write to %s; take that right away: chmod go-w", s.dir)
	}
	return nil
}

// Check returns an error if entries cannot be written. It creates nothing.
func (s *Store) Check() error {
	if info, err := os.Stat(s.dir); err == nil && info.IsDir() && info.Mode().Perm()&0o022 != 0 {
		return s.makeDir() // which says so
	}
	return statefile.CheckWritable(s.dir)
}
