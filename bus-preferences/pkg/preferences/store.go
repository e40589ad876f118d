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

// maxFileSize is the maximum size of the file, in bytes.
const maxFileSize = 4 << 20

// read returns the document of s. It takes no lock, except to move the file of an
// earlier version.
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

// find returns the content of the file and its path, or no data if it does not
// exist.
func (s store) find(ctx context.Context) (path string, data []byte, err error) {
	if data, err := readFile(s.path); !errors.Is(err, fs.ErrNotExist) {
		return s.path, data, err
	}
	if err := s.migrate(ctx); err != nil && ctx.Err() != nil {
		return "", nil, err
	}
	// If the file cannot be moved, read it in its old location. Another process may
	// be moving it meanwhile, so look in the new location before and after.
	paths := append([]string{s.path}, s.old...)
	if exists(s.path) { // a dangling link, which counts as an empty file
		paths = nil
	}
	for _, path := range append(paths, s.path) {
		if data, err := readFile(path); !errors.Is(err, fs.ErrNotExist) {
			return path, data, err
		}
	}
	return s.path, nil, nil
}

// update changes the document of s, holding the lock. It writes the file only if its
// content changes.
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
		return fmt.Errorf("%s: the preferences would be larger than %d bytes; nothing was written", s.path, maxFileSize)
	}
	if bytes.Equal(before, after) {
		return nil
	}
	like, err := os.Stat(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return notWritten(target, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return replaceFile(target, after, like)
}

func parseFile(path string, data []byte) (*document, error) {
	doc, err := parseDocument(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; repair or remove the file", path, err)
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

// followLinks returns the target of path if it is a symbolic link, or else path.
// Unlike with filepath.EvalSymlinks, the target need not exist.
func followLinks(path string) (string, error) {
	start := path
	for range 40 {
		link, err := os.Readlink(path)
		if err != nil {
			return path, nil // not a link; opening it reports other errors
		}
		if !filepath.IsAbs(link) {
			// Resolve the parent first: it may be a link too, and link may begin
			// with "..".
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
