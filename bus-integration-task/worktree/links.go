package worktree

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLinks bounds the modules of a .gitmodules.
const maxLinks = 10_000

// Links returns the dependency links of the worktree: absolute names of symbolic links,
// each with the folder of the workspace that it leads to. They let relative paths such as
// ../other resolve to the modules of a superproject. What keeps a task from writing
// through them is the sandbox of the task, which must have the workspace read-only.
func (w *Worktree) Links() map[string]string { return maps.Clone(w.record.Links) }

// link makes links to the modules of the superproject: next to the checkout, or in it
// where the checkout is that of the superproject.
func (w *Worktree) link(ctx context.Context, p *private, superproject string) error {
	r := w.repo
	if superproject == "" {
		superproject = r.config.Workspace
	}
	real, err := filepath.EvalSymlinks(superproject)
	if err != nil || !filepath.IsAbs(superproject) || !within(r.config.Workspace, real) {
		return problem(ErrName, "superproject %s: it is not a folder of the workspace; name one", superproject)
	}
	own, err := filepath.Rel(real, r.primary)
	if err != nil || !filepath.IsLocal(own) {
		return nil
	}
	paths, err := p.modules(ctx, real)
	if err != nil {
		return err
	}
	links := make(map[string]string)
	for _, module := range paths {
		target := filepath.Join(real, module)
		if found, err := filepath.EvalSymlinks(target); err != nil || found != target {
			if err != nil && errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return problem(ErrName, ".gitmodules: path %q leads through a link; make it a folder", module)
		}
		if info, err := os.Stat(target); err != nil || !info.IsDir() {
			continue
		}
		if own == "." {
			name := filepath.Join(w.record.Path, module)
			if !exists(name) || isEmptyFolder(name) { // else the entry is stale
				links[name] = target
			}
			continue
		}
		if within(target, r.primary) || within(r.primary, target) {
			continue
		}
		links[filepath.Join(w.base(own), module)] = target
	}
	for _, name := range slices.Sorted(maps.Keys(links)) {
		if err := w.linkOne(name, links[name]); err != nil {
			return err
		}
	}
	w.record.Links = links
	return nil
}

// base is the folder next to which the modules of the superproject are, when the checkout
// has the path own in it.
func (w *Worktree) base(own string) string {
	return strings.TrimSuffix(w.record.Path, string(filepath.Separator)+own)
}

// linkOne makes one link, in the place of an empty folder.
func (w *Worktree) linkOne(name, target string) error {
	dir := filepath.Dir(name)
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		// The checkout can have a link where .gitmodules has a folder.
		var real string
		if real, err = filepath.EvalSymlinks(dir); err == nil && real != dir {
			return problem(ErrName, ".gitmodules: path of %q leads through a link; make it a folder", name)
		}
	}
	if err == nil {
		if info, e := os.Lstat(name); e == nil && info.IsDir() {
			err = os.Remove(name)
		}
	}
	if err == nil {
		err = os.Symlink(target, name)
	}
	if err != nil {
		return problem(ErrGit, "dependency link: %w", err)
	}
	return nil
}

// modules returns the paths in the .gitmodules of a folder, checked, none without one.
func (p *private) modules(ctx context.Context, folder string) ([]string, error) {
	data, err := readData(filepath.Join(folder, ".gitmodules"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, problem(ErrName, ".gitmodules: %w", err)
	}
	var paths []string
	err = p.each(ctx, call{stdin: bytes.NewReader(data)}, func(record string) error {
		key, value, _ := strings.Cut(record, "\n")
		if !strings.HasPrefix(key, "submodule.") || !strings.HasSuffix(key, ".path") {
			return nil
		}
		if err := checkModulePath(value); err != nil {
			return err
		}
		if paths = append(paths, value); len(paths) > maxLinks {
			return problem(ErrTooLarge, ".gitmodules: more than %d modules", maxLinks)
		}
		return nil
	}, "config", "--file", "-", "--no-includes", "--null", "--list")
	slices.Sort(paths)
	return slices.Compact(paths), err
}
