package preferences

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFileSize bounds what is read or written, so that a wrong path cannot fill
// the memory.
const maxFileSize = 4 << 20

// read returns the document of s. It takes no lock, and it writes nothing but
// the move of a file of an earlier version, where that is possible.
func (s store) read(ctx context.Context) (*document, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.path == "" {
		return parseDocument(nil)
	}
	path, data, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	return parseFile(path, data)
}

// find returns the content of the file and where it was found, no data where
// there is none.
func (s store) find(ctx context.Context) (path string, data []byte, err error) {
	if data, err := readFile(s.path); !errors.Is(err, fs.ErrNotExist) {
		return s.path, data, err
	}
	if err := s.migrate(ctx); err != nil && ctx.Err() != nil {
		return "", nil, err
	}
	// Where the move was impossible the file is read in its old place. Others
	// may be moving it at this moment; as it only ever goes from the old place
	// to the new, one of these finds it.
	places := append([]string{s.path}, s.old...)
	if exists(s.path) { // a link to nowhere: an empty file, as for writers
		places = nil
	}
	for _, path := range append(places, s.path) {
		if data, err := readFile(path); !errors.Is(err, fs.ErrNotExist) {
			return path, data, err
		}
	}
	return s.path, nil, nil
}

// update changes the document of s under the lock. Nothing is written when the
// change leaves the file as it is.
func (s store) update(ctx context.Context, change func(*document)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.path == "" {
		return fmt.Errorf("%w: set BUS_PREFERENCES_PATH to the path of a file", ErrNoLocation)
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	target, err := followLinks(s.path)
	if err != nil {
		return err
	}
	if info, err := os.Stat(target); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file; nothing was written", s.path)
	}
	unlock, err := lock(ctx, target)
	if err != nil {
		return err
	}
	defer unlock()

	before, err := readFile(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	doc, err := parseFile(s.path, before)
	if err != nil {
		return err
	}
	change(doc)
	after, err := doc.encode()
	if err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	if len(after) > maxFileSize {
		return fmt.Errorf("%s: the preferences would take more than %d bytes; nothing was written", s.path, maxFileSize)
	}
	if bytes.Equal(before, after) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return replaceFile(target, after)
}

func parseFile(path string, data []byte) (*document, error) {
	doc, err := parseDocument(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; repair the file or move it away", path, err)
	}
	return doc, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openWithoutWaiting, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := checkRegular(f); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	if err == nil && len(data) > maxFileSize {
		err = fmt.Errorf("%s: %w: larger than %d bytes", path, ErrMalformed, maxFileSize)
	}
	return data, err
}

// followLinks returns the path that is written for path: itself, or where it
// leads as a symbolic link. Unlike filepath.EvalSymlinks it allows the target
// not to exist yet.
func followLinks(path string) (string, error) {
	start := path
	for range 40 {
		link, err := os.Readlink(path)
		if err != nil {
			return path, nil // not a link; whatever else is wrong shows when it is opened
		}
		if !filepath.IsAbs(link) {
			// The parent may be a link itself, so the two must not be joined
			// as text before it is resolved.
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			link = filepath.Join(dir, link)
		}
		path = link
	}
	return "", fmt.Errorf("%s: too many symbolic links", start)
}
