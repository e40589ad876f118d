package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Each calls f with the entries of a directory, in no order, until f or the budget
// returns an error.
func Each(b *Budget, dir *os.Root, f func(entry fs.DirEntry) error) error {
	file, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer file.Close()
	for {
		entries, err := file.ReadDir(batch)
		for _, entry := range entries {
			if err := b.Entry(); err != nil {
				return err
			}
			if err := f(entry); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Files calls f with each regular file below a directory of root: its directory, its
// name, and its path from dir. Folders that are too deep or cannot be read are left
// out; skipped is the first such error. When f returns fs.SkipAll the walk ends without
// an error.
func Files(b *Budget, root *os.Root, dir string, f func(in *os.Root, name, rel string) error) (skipped, err error) {
	top, err := root.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	w := walker{budget: b, f: f}
	if err = w.walk(top, "", 1); errors.Is(err, fs.SkipAll) {
		err = nil
	}
	return w.skipped, err
}

type walker struct {
	budget  *Budget
	f       func(in *os.Root, name, rel string) error
	skipped error // the first
}

func (w *walker) walk(dir *os.Root, rel string, depth int) error {
	return Each(w.budget, dir, func(entry fs.DirEntry) error {
		name := entry.Name()
		switch {
		case entry.Type().IsRegular():
			return w.f(dir, name, path.Join(rel, name))
		case !entry.IsDir():
			return nil
		}
		err := w.budget.Depth(depth + 1)
		var sub *os.Root
		if err == nil {
			sub, err = dir.OpenRoot(name)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			if w.skipped == nil {
				w.skipped = fmt.Errorf("the folder %q is left out: %w", path.Join(rel, name), err)
			}
			return nil
		}
		defer sub.Close()
		return w.walk(sub, path.Join(rel, name), depth+1)
	})
}

// Glob returns the paths in root that match a pattern, element by element as
// path.Match does, in order. It goes down into directories, not through links.
func Glob(b *Budget, root *os.Root, pattern string) ([]string, error) {
	parts := strings.Split(pattern, "/")
	if err := b.Depth(len(parts)); err != nil {
		return nil, err
	}
	found, err := glob(b, root, "", parts)
	slices.Sort(found)
	return found, err
}

func glob(b *Budget, dir *os.Root, rel string, parts []string) (found []string, err error) {
	visit := func(name string) error {
		at := path.Join(rel, name)
		if len(parts) == 1 {
			found = append(found, at)
			return nil
		}
		info, err := dir.Lstat(name)
		if err != nil || !info.IsDir() {
			return nil
		}
		sub, err := dir.OpenRoot(name)
		if err != nil {
			return nil
		}
		defer sub.Close()
		below, err := glob(b, sub, at, parts[1:])
		found = append(found, below...)
		return err
	}
	if !strings.ContainsAny(parts[0], `*?[\`) {
		if err := b.Entry(); err != nil {
			return nil, err
		}
		if _, err := dir.Lstat(parts[0]); err != nil {
			return nil, nil
		}
		err = visit(parts[0])
		return found, err
	}
	err = Each(b, dir, func(entry fs.DirEntry) error {
		if ok, err := path.Match(parts[0], entry.Name()); !ok || err != nil {
			return err
		}
		return visit(entry.Name())
	})
	return found, err
}
