package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// entryVersion is the version of the form of entries.
const entryVersion = 1

// maxEntry is the longest file of an entry, in bytes.
const maxEntry = 64 << 10

// entryFile is the form of an entry in a file.
type entryFile struct {
	Version int `json:"version"`
	Entry
}

// readEntry reads the entry in a file.
func readEntry(path string) (Entry, error) {
	text, err := readRegular(path, maxEntry)
	if err != nil {
		return Entry{}, err
	}
	var f struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return Entry{}, fmt.Errorf("it is no entry of a session: %w", err)
	}
	if f.Version != entryVersion {
		return Entry{}, fmt.Errorf("it has version %d, this program knows %d", f.Version, entryVersion)
	}
	var e entryFile
	if err := json.Unmarshal(text, &e); err != nil {
		return Entry{}, fmt.Errorf("it is no entry of a session: %w", err)
	}
	if e.SessionID == "" {
		return Entry{}, errors.New("it is no entry of a session: it has no session_id")
	}
	return e.Entry, nil
}

// readRegular reads a regular file of at most limit bytes.
func readRegular(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errors.New("it is not a regular file"), err)
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return text, err
}

// partSuffix ends the names of files that are being written.
const partSuffix = ".part"

// write replaces the file of an entry. The folder is there and locked.
func (s *Store) write(e Entry) error {
	text, err := json.MarshalIndent(entryFile{entryVersion, e}, "", "  ")
	if err != nil {
		return err
	}
	if len(text) >= maxEntry {
		return fmt.Errorf("the entry of session %s has %d bytes; the limit is %d", e.SessionID, len(text), maxEntry)
	}
	part, err := os.CreateTemp(s.dir, "*"+partSuffix) // 0600
	if err != nil {
		return fmt.Errorf("state of sessions: %w", err)
	}
	_, err = part.Write(append(text, '\n'))
	err = errors.Join(err, part.Sync(), part.Close())
	if err == nil {
		err = os.Rename(part.Name(), s.path(e.SessionID))
	}
	if err != nil {
		_ = os.Remove(part.Name())
		return fmt.Errorf("state of sessions: %w", err)
	}
	return s.sync()
}

// sync makes the names in the folder last.
func (s *Store) sync() error {
	dir, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // not every file system can
		return fmt.Errorf("state of sessions: %w", err)
	}
	return nil
}

// removeParts removes what writers have left that were killed. The folder is
// locked, so nobody is writing.
func (s *Store) removeParts() {
	parts, _ := filepath.Glob(filepath.Join(escapePattern(s.dir), "*"+partSuffix))
	for _, name := range parts {
		_ = os.Remove(name)
	}
}

func escapePattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// lockLimit is how long others may hold the lock, who need it for moments.
const lockLimit = 10 * time.Second

// lock makes the folder, if it is not there, and waits until nobody else writes.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	if err := s.makeDir(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(s.dir, ".lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state of sessions: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lockLimit, fmt.Errorf("another process has held the lock of %s for %v", s.dir, lockLimit))
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 5*time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() {
				_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // a process that is being started has a copy
				f.Close()
			}, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("state of sessions: lock %s: %w", s.dir, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("state of sessions: %w", context.Cause(ctx))
		}
	}
}

// makeDir makes the folder. One that others can write to is refused: what is in
// it decides what is resumed, and as whom.
func (s *Store) makeDir() error {
	if !filepath.IsAbs(s.dir) {
		return fmt.Errorf("state of sessions: %q is no absolute path", s.dir)
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

// Check returns why entries cannot be written, without making anything.
func (s *Store) Check() error {
	for dir := s.dir; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist) && dir != filepath.Dir(dir):
			continue // it would be made
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a directory", dir)
		case dir == s.dir && info.Mode().Perm()&0o022 != 0:
			return s.makeDir() // which says so
		}
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		return nil
	}
}
