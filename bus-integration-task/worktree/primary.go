package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const lockMark = "bus-integration-task: a promotion is running or was killed; the next one cleans up\n"

func (r *Repository) indexLock() string { return filepath.Join(r.gitDir, "index.lock") }

// lockIndex takes the lock by which git itself keeps others from the index.
func (r *Repository) lockIndex() error {
	name := r.indexLock()
	temporary := filepath.Join(r.gitDir, "bus-task-index.lock")
	os.Remove(temporary)
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.WriteString(lockMark)
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = os.Link(temporary, name) // in one step, with its content
	}
	os.Remove(temporary)
	if errors.Is(err, fs.ErrExist) {
		return problem(ErrDirty, "primary checkout %s: index.lock exists, so another git process is running or was killed; wait, or remove it", r.primary)
	}
	if err != nil {
		return problem(ErrGit, "index.lock: %w", err)
	}
	return nil
}

// removeIndexLock removes the index.lock of a promotion, and none of a user.
func (r *Repository) removeIndexLock() {
	if r.ownsIndexLock() {
		os.Remove(r.indexLock())
	}
}

func (r *Repository) ownsIndexLock() bool {
	data, err := readData(r.indexLock())
	return err == nil && string(data) == lockMark
}

// checkPrimary checks that index and files of the primary are those of old, and that
// nothing is in the way of commit. It leaves a copy of the index in p.
func (r *Repository) checkPrimary(ctx context.Context, p *private, old, commit string) error {
	if err := r.copyIndex(ctx, p); err != nil {
		return err
	}
	dirty := &names{}
	err := p.each(ctx, in(r.primary), dirty.add, "diff-index", "-z", "--cached", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", old, "--")
	if err == nil && dirty.total == 0 {
		err = p.each(ctx, in(r.primary), dirty.add, "diff-files", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--")
	}
	if err != nil {
		return err
	}
	if dirty.total > 0 {
		return problem(ErrDirty, "primary checkout %s: %d tracked files have changes (%s); commit, stash or discard them", r.primary, dirty.total, dirty)
	}
	changed := make(map[string]byte)
	err = p.compare(ctx, old, commit, func(f File) error {
		if changed[f.Path] = f.Status; len(changed) > maxPromoted {
			return problem(ErrTooLarge, "commit %s: it changes more than %d files; merge it with git", commit, maxPromoted)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = p.each(ctx, in(r.primary), func(name string) error {
		if changed[name] != 0 {
			return problem(ErrDirty, "primary checkout %s: submodule %s is at another commit than it records; update it", r.primary, oneLine(name, 200))
		}
		return nil
	}, "diff-files", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--")
	if err != nil {
		return err
	}
	if err := r.checkWay(changed); err != nil {
		return err
	}
	if _, err := p.git(ctx, in(r.primary), "read-tree", "-m", "-u", "-n", "--no-recurse-submodules", old, commit); err != nil {
		if errors.Is(err, ErrGit) {
			err = problem(ErrDirty, "primary checkout %s: files are in the way (%w); move them", r.primary, err)
		}
		return err
	}
	return nil
}

// maxPromoted bounds the files that a promotion changes.
const maxPromoted = 2_000_000

// checkWay refuses files in the way of new ones that git does not track. Git itself
// replaces those that are ignored.
func (r *Repository) checkWay(changed map[string]byte) error {
	inWay := func(name string) error {
		return problem(ErrDirty, "primary checkout %s: %s is in the way of a new file; move it", r.primary, oneLine(name, 200))
	}
	clear := map[string]bool{".": true} // folders known not to be in the way
	real := foldersOf(r.primary)
	for name, status := range changed {
		if status != 'A' {
			continue
		}
		for dir := path.Dir(name); !clear[dir]; dir = path.Dir(dir) {
			clear[dir] = true
			info, err := os.Lstat(filepath.Join(r.primary, dir))
			if err == nil && !info.IsDir() && changed[dir] != 'D' {
				return inWay(dir)
			}
		}
		if !real.real(path.Dir(name)) {
			continue // a link that leads to such a file is removed
		}
		info, err := os.Lstat(filepath.Join(r.primary, name))
		if err != nil {
			continue
		}
		if !info.IsDir() {
			return inWay(name)
		}
		err = filepath.WalkDir(filepath.Join(r.primary, name), func(file string, e fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(r.primary, file)
			if err != nil || !e.IsDir() && changed[filepath.ToSlash(rel)] != 'D' {
				return inWay(rel)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// copyIndex copies the index of the primary to p and compares it with the files.
func (r *Repository) copyIndex(ctx context.Context, p *private) error {
	index := filepath.Join(p.dir, "index")
	os.Remove(index)
	if err := copyFile(filepath.Join(r.gitDir, "index"), index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return problem(ErrGit, "index of the primary checkout: %w", err)
	}
	// Also files that git treats as unchanged because the user has said so.
	if _, err := p.git(ctx, in(r.primary), "update-index", "-q", "--really-refresh", "--ignore-submodules"); err != nil {
		return problem(ErrUnsupported, "index of %s: %w", r.primary, err)
	}
	return p.each(ctx, call{}, func(entry string) error {
		if strings.HasPrefix(entry, "S ") || strings.HasPrefix(entry, "s ") {
			return problem(ErrUnsupported, "primary checkout %s: it is sparse (%s is not checked out); check out all files", r.primary, oneLine(entry[2:], 200))
		}
		return nil
	}, "ls-files", "-z", "-v")
}

// names are the first few of a list of paths, and its length.
type names struct {
	first []string
	total int
}

func (n *names) add(name string) error {
	if n.total++; len(n.first) < 3 {
		n.first = append(n.first, oneLine(name, 100))
	}
	return nil
}

func (n *names) String() string {
	text := strings.Join(slices.Sorted(slices.Values(n.first)), ", ")
	if n.total > len(n.first) {
		text += ", …"
	}
	return text
}
