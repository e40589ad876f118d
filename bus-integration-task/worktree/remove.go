package worktree

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/busdk/bus-integration-task/internal/unix"
)

// Remove removes the checkout, its links and its git directory, and closes the worktree.
// With branch it also removes a branch that was created for the worktree, unless its tip is
// not on the base branch: then the branch is kept, and the error matches ErrDiverged.
//
// A worker removes what was promoted, with its branch, and what changed nothing. It keeps
// what is blocked or failed, see [Worktree.Close].
func (w *Worktree) Remove(ctx context.Context, branch bool) error {
	if branch {
		if err := w.removeBranch(ctx); err != nil {
			return err
		}
	}
	return w.discard()
}

// removeBranch removes the branch if nothing is lost with it. A branch that was not created
// for the worktree has commits of others, which the base does not tell apart.
func (w *Worktree) removeBranch(ctx context.Context) error {
	if !w.record.Created {
		return nil
	}
	p, err := w.repo.private()
	if err != nil {
		return err
	}
	defer p.close()
	tip, err := p.tip(ctx, w.record.Branch)
	if errors.Is(err, ErrBranch) {
		return problem(ErrDiverged, "%w", err)
	}
	if err != nil || tip == "" {
		return err
	}
	base, err := p.resolve(ctx, "refs/heads/"+w.record.BaseBranch)
	if err != nil {
		return err
	}
	contained := tip == w.record.Base || tip == w.record.Landed
	if !contained && base != "" {
		if contained, err = p.isAncestor(ctx, tip, base); err != nil {
			return err
		}
	}
	if !contained {
		return problem(ErrDiverged, "branch %s: its commit %s is not on %s; promote it, or remove the worktree and keep the branch", w.record.Branch, tip, w.record.BaseBranch)
	}
	return p.deleteBranch(ctx, w.record.Branch, tip)
}

// discard removes the files of a worktree.
func (w *Worktree) discard() error {
	err := removeAll(w.record.Root, w.Folder())
	err = errors.Join(err, w.repo.removeAdmin(w.record.ID))
	if w.lock != nil {
		unix.Unlock(w.lock)
	}
	// As git does it.
	os.Remove(filepath.Join(w.repo.common, "worktrees"))
	if err != nil {
		return problem(ErrGit, "worktree %s: %w", w.record.ID, err)
	}
	return nil
}

// removeAdmin removes the git directory of a worktree, its lock last: where this is killed,
// the lock shows that no user made the rest.
func (r *Repository) removeAdmin(id string) error {
	admin := r.admin(id)
	entries, err := os.ReadDir(admin)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, removeAll(admin, filepath.Join(admin, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	return removeAll(r.common, admin)
}

// removeAll removes a file or a folder below root without following links, whatever a task
// has left there.
func removeAll(root, name string) error {
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer dir.Close()
	switch info, err := dir.Lstat(rel); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return dir.Remove(rel)
	}
	_ = dir.Chmod(rel, 0o700)
	top, err := dir.OpenRoot(rel)
	if err != nil {
		return err
	}
	defer top.Close()
	for r := (remover{top: top}); ; r.lifted = false {
		if r.empty(top, ""); r.failed != nil {
			return r.failed
		}
		if !r.lifted {
			return dir.Remove(rel)
		}
	}
}

// maxHeld bounds the folders, one in the other, that a remover holds: a process cannot hold
// as many as a task can make.
const maxHeld = 64

// A remover removes what is in a folder. It lifts what is deep in it to the top.
type remover struct {
	top    *os.Root
	held   int
	lifted bool
	failed error // the first
}

func (r *remover) empty(dir *os.Root, rel string) {
	r.held++
	defer func() { r.held-- }()
	f, err := dir.Open(".")
	if err != nil {
		r.fail(err)
		return
	}
	entries, err := f.ReadDir(-1)
	f.Close()
	r.fail(err)
	for _, e := range entries {
		name := e.Name()
		if !e.IsDir() {
			r.fail(dir.Remove(name))
			continue
		}
		_ = dir.Chmod(name, 0o700) // read-only folders
		if r.held == maxHeld {
			r.lifted = true
			r.fail(r.top.Rename(filepath.Join(rel, name), ".deep-"+rand.Text()))
			continue
		}
		sub, err := dir.OpenRoot(name)
		if err != nil {
			r.fail(err)
			continue
		}
		r.empty(sub, filepath.Join(rel, name))
		sub.Close()
		r.fail(dir.Remove(name))
	}
}

func (r *remover) fail(err error) {
	if r.failed == nil && !errors.Is(err, fs.ErrNotExist) {
		r.failed = err
	}
}

// Stale describes a worktree whose worker has ended without removing it.
type Stale struct {
	ID         string
	Ref        string // task
	Path       string
	Branch     string
	BaseBranch string
	Base, Head string // commits; equal if the bridge has committed nothing
	Retained   bool   // by [Worktree.Retain]
}

// Prune removes the worktrees that no process holds and that remove selects, and their
// branches as [Worktree.Remove] does. It returns the IDs of what
// it has removed. It also removes private folders of processes that were killed.
//
// Retained worktrees are not held either. Content that was not committed is lost.
func (r *Repository) Prune(ctx context.Context, remove func(Stale) bool) (removed []string, err error) {
	err = r.pruneState()
	entries, e := os.ReadDir(filepath.Join(r.common, "worktrees"))
	if e != nil && !errors.Is(e, fs.ErrNotExist) {
		return nil, errors.Join(err, problem(ErrGit, "%w", e))
	}
	for _, entry := range entries {
		if cause := context.Cause(ctx); cause != nil {
			return removed, cause
		}
		w, e := r.take(ctx, entry.Name(), 0)
		if errors.Is(e, ErrGone) {
			err = errors.Join(err, r.pruneRest(ctx, entry.Name()))
			continue
		}
		if e != nil {
			continue // in use
		}
		s := w.record
		if !remove(Stale{ID: s.ID, Ref: s.Ref, Path: s.Path, Branch: s.Branch, BaseBranch: s.BaseBranch, Base: s.Base, Head: s.Head, Retained: s.Retained}) {
			w.Close()
			continue
		}
		if e := w.removeBranch(ctx); e != nil && !errors.Is(e, ErrDiverged) {
			w.Close()
			err = errors.Join(err, e)
			continue
		}
		if e := w.discard(); e != nil {
			err = errors.Join(err, e)
			continue
		}
		removed = append(removed, s.ID)
	}
	return removed, err
}

// pruneRest removes the git directory of a worktree whose process was killed while it made
// or removed it: it has no record and either the lock or nothing. Others are of a user.
func (r *Repository) pruneRest(ctx context.Context, id string) error {
	guard, err := waitLock(ctx, filepath.Join(r.common, addLockName), r.config.LockWait) // none is being made
	if err != nil {
		return err
	}
	defer unix.Unlock(guard)
	admin := r.admin(id)
	if !exists(filepath.Join(admin, lockName)) {
		os.Remove(admin) // only an empty one
		return nil
	}
	if exists(filepath.Join(admin, recordName)) {
		return nil // damaged: it may have work
	}
	lock, err := lockFile(filepath.Join(admin, lockName))
	if err != nil {
		return nil // in use
	}
	defer unix.Unlock(lock)
	if err := r.removeAdmin(id); err != nil {
		return problem(ErrGit, "worktree %s: %w", id, err)
	}
	return nil
}

// pruneState removes private git directories whose process was killed.
func (r *Repository) pruneState() error {
	dirs, err := filepath.Glob(filepath.Join(r.config.State, "git-*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		lock, e := lockFile(filepath.Join(dir, lockName))
		if e != nil {
			continue
		}
		err = errors.Join(err, os.RemoveAll(dir))
		unix.Unlock(lock)
	}
	return err
}
