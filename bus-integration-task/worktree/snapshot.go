package worktree

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// maxPaths bounds the bytes of the names of changed files together.
const maxPaths = 64 << 20

// snapshot stores the files of the worktree as a tree, and leaves them in the index of p.
// All files are read, since an index of the task could hide changes.
func (w *Worktree) snapshot(ctx context.Context, p *private) (tree string, err error) {
	if err := w.checkFolder(); err != nil {
		return "", err
	}
	nested, err := w.checkSpecial(ctx)
	if err != nil {
		return "", err
	}
	if _, err := p.git(ctx, call{}, "read-tree", w.record.Head); err != nil {
		return "", err
	}
	if err := w.checkNested(ctx, p, nested); err != nil {
		return "", err
	}
	c := in(w.record.Path)
	if _, err := p.git(ctx, c, "update-index", "-q", "--refresh", "--ignore-submodules"); err != nil {
		return "", err
	}
	modules, err := w.checkModules(ctx, p)
	if err != nil {
		return "", err
	}
	s := &selection{worktree: w, modules: modules, folders: foldersOf(w.record.Path), seen: make(map[string]bool)}
	err = p.each(ctx, in(w.record.Path), func(entry string) error {
		return s.add(entry[min(2, len(entry)):]) // after "C "
	}, "ls-files", "-z", "-t", "--modified", "--deleted", "--others", "--exclude-standard")
	if err != nil {
		return "", err
	}
	c.stdin = strings.NewReader(s.removed.String())
	if _, err := p.git(ctx, c, "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	c.stdin = strings.NewReader(s.added.String())
	if _, err := p.git(ctx, c, "update-index", "-z", "--add", "--replace", "--stdin"); err != nil {
		return "", problem(ErrContent, "worktree: %w", err)
	}
	return p.text(ctx, call{}, "write-tree")
}

const maxNested = 10_000 // repositories in a worktree, whether they are ignored or not

// checkSpecial refuses what git would wait for without end when it reads the attributes
// and the patterns of ignored files, and returns the folders that have a .git.
func (w *Worktree) checkSpecial(ctx context.Context) (nested []string, err error) {
	return nested, filepath.WalkDir(w.record.Path, func(name string, e fs.DirEntry, err error) error {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				return nil // git reports it if it matters
			}
			return problem(ErrContent, "worktree: %w", err)
		}
		if e.Name() == ".git" {
			if dir := filepath.Dir(name); dir != w.record.Path {
				if nested = append(nested, w.relative(dir)); len(nested) > maxNested {
					return problem(ErrTooLarge, "worktree: more than %d folders have a .git", maxNested)
				}
			}
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil // git does not open it
		}
		if strings.HasPrefix(e.Name(), ".git") && e.Type()&^(fs.ModeDir|fs.ModeSymlink) != 0 {
			return problem(ErrContent, "%s: it is neither a file nor a folder; remove it", w.relative(name))
		}
		return nil
	})
}

// checkNested refuses folders that have a .git and are not ignored. Git would read the files
// in that, which can be of any kind, and not commit those around it.
func (w *Worktree) checkNested(ctx context.Context, p *private, folders []string) error {
	if len(folders) == 0 {
		return nil
	}
	ignored := make(map[string]bool)
	c := in(w.record.Path, "GIT_LITERAL_PATHSPECS=0") // check-ignore does not support it; "./" does it too
	c.stdin, c.ok = strings.NewReader("./"+strings.Join(folders, "\x00./")+"\x00"), []int{1}
	err := p.each(ctx, c, func(name string) error {
		ignored[strings.TrimPrefix(name, "./")] = true
		return nil
	}, "check-ignore", "-z", "--stdin")
	for _, name := range folders {
		if err == nil && !ignored[name] {
			err = problem(ErrContent, "%s: it is a repository in the worktree; remove it or its .git", oneLine(name, 200))
		}
	}
	return err
}

func (w *Worktree) relative(name string) string {
	rel, err := filepath.Rel(w.record.Path, name)
	if err != nil {
		return name
	}
	return rel
}

// checkModules returns the paths of submodules, and refuses those that have content: git
// does not see the files in them, so they would be lost.
func (w *Worktree) checkModules(ctx context.Context, p *private) (map[string]bool, error) {
	modules := make(map[string]bool)
	err := p.each(ctx, call{}, func(entry string) error {
		info, name, _ := strings.Cut(entry, "\t")
		if !strings.HasPrefix(info, "160000 ") {
			return nil
		}
		modules[name] = true
		full := filepath.Join(w.record.Path, name)
		if target, err := os.Readlink(full); err == nil {
			if w.record.Links[full] == target {
				return nil
			}
		} else if isEmptyFolder(full) {
			return nil
		}
		return problem(ErrContent, "submodule %s: it was changed, filled or removed in the worktree; change it in a task of that module, and restore the empty folder", oneLine(name, 200))
	}, "ls-files", "-z", "--stage")
	return modules, err
}

func isEmptyFolder(name string) bool {
	info, err := os.Lstat(name)
	if err != nil || !info.IsDir() {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

// A selection is what differs between the index and the files of a worktree, in the forms
// that git update-index reads.
type selection struct {
	worktree       *Worktree
	modules        map[string]bool
	folders        *folders
	seen           map[string]bool
	removed, added strings.Builder
	bytes          int64
}

// add puts a path where its file, if it has one, belongs.
func (s *selection) add(name string) error {
	w := s.worktree
	full := filepath.Join(w.record.Path, name)
	if s.modules[name] || s.seen[name] || w.record.Links[full] != "" {
		return nil
	}
	s.seen[name] = true
	limits := &w.repo.config
	if len(s.seen) > limits.MaxFiles || s.removed.Len()+s.added.Len() > maxPaths {
		return problem(ErrTooLarge, "worktree: more than %d files have changed; remove what the task only produced, or ignore it", limits.MaxFiles)
	}
	if strings.HasSuffix(name, "/") {
		return problem(ErrContent, "%s: it is a repository in the worktree; remove it or its .git", oneLine(name, 200))
	}
	remove := func() error {
		s.removed.WriteString("0 " + strings.Repeat("0", len(w.record.Head)) + "\t" + name + "\x00")
		return nil
	}
	if !s.folders.real(path.Dir(name)) {
		return remove()
	}
	info, err := os.Lstat(full)
	if errors.Is(err, fs.ErrNotExist) {
		return remove()
	}
	if err != nil {
		return problem(ErrContent, "worktree: %w", err)
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		return remove()
	case 0, fs.ModeSymlink:
		if s.bytes += info.Size(); s.bytes > limits.MaxBytes {
			return problem(ErrTooLarge, "%s: changed files have more than %d bytes together; remove what the task only produced, or ignore it", oneLine(name, 200), limits.MaxBytes)
		}
		s.added.WriteString(name + "\x00")
		return nil
	}
	return problem(ErrContent, "%s: it is neither a file, a folder nor a link; remove it", oneLine(name, 200))
}
