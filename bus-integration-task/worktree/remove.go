package worktree

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/busdk/bus-integration-task/internal/unix"
)

// Remove removes the checkout, its links and its git directory, and closes the worktree.
// With branch it also removes a branch that was created for the worktree, unless its tip is
// not on the base branch: then the branch is kept, and the error matches ErrDiverged. After
// any other error, also when ctx ends, [Repository.Prune] removes the rest.
//
// A worker removes what was promoted, with its branch, and what changed nothing. It keeps
// what is blocked or failed, see [Worktree.Close].
func (w *Worktree) Remove(ctx context.Context, branch bool) error {
	if branch {
		if err := w.removeBranch(ctx); err != nil {
			return err
		}
	}
	return w.discard(ctx)
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

// discard removes the files of a worktree. After an error, [Repository.Prune] removes the
// rest, and nothing continues it.
func (w *Worktree) discard(ctx context.Context) error {
	w.record.Retained, w.record.Unfinished = false, true
	_ = w.saveLast() // what cannot be written is removed all the same
	err := removeAll(ctx, w.record.Root, w.Folder())
	if err == nil {
		err = w.repo.removeAdmin(ctx, w.record.ID)
	}
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
func (r *Repository) removeAdmin(ctx context.Context, id string) error {
	admin := r.admin(id)
	entries, err := os.ReadDir(admin)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, removeAll(ctx, admin, filepath.Join(admin, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	return removeAll(ctx, r.common, admin)
}

// removeAll removes a file or a folder below root without following links, whatever a task
// has left there, until ctx ends.
func removeAll(ctx context.Context, root, name string) error {
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer dir.Close()
	info, err := dir.Lstat(rel)
	if err != nil || !info.IsDir() {
		if err == nil {
			err = dir.Remove(rel)
		}
		return unlessGone(err)
	}
	top, err := openFolder(dir, rel)
	if err != nil {
		return unlessGone(err)
	}
	defer top.Close()
	r := remover{ctx: ctx, top: top}
	for retried := false; ; {
		r.lifted, r.failed = false, nil
		r.empty(top, "")
		if r.failed == nil && !r.lifted {
			r.fail(dir.Remove(rel))
			if r.failed == nil {
				return nil
			}
		}
		if r.failed != nil {
			if retried || ctx.Err() != nil {
				return r.failed
			}
			retried = true // a process that is just ending may have added a file
		}
	}
}

// maxHeld bounds the folders, one in the other, that a remover holds: a process cannot hold
// as many as a task can make.
const maxHeld = 64

// A remover removes what is in a folder. It lifts what is deep in it to the top.
type remover struct {
	ctx    context.Context
	top    *os.Root
	held   int
	lifted bool
	failed error // the first
}

// empty removes what is in dir, whose path from the top is rel.
func (r *remover) empty(dir *os.Root, rel string) {
	r.held++
	defer func() { r.held-- }()
	for removed := true; removed; {
		f, err := dir.Open(".")
		if err != nil {
			r.fail(err)
			return
		}
		entries, err := f.ReadDir(1000)
		f.Close()
		if err != io.EOF {
			r.fail(err)
		}
		removed = false
		for _, e := range entries {
			if r.ctx.Err() != nil {
				r.fail(context.Cause(r.ctx))
				return
			}
			err := r.remove(dir, rel, e)
			r.fail(err)
			removed = removed || err == nil
		}
	}
}

func (r *remover) remove(dir *os.Root, rel string, e fs.DirEntry) error {
	name := e.Name()
	err := unlessGone(dir.Remove(name))
	if err == nil || !e.IsDir() {
		return err
	}
	sub, err := openFolder(dir, name)
	if err != nil {
		return unlessGone(err)
	}
	defer sub.Close()
	if r.held == maxHeld {
		r.lifted = true
		return r.top.Rename(filepath.Join(rel, name), ".deep-"+rand.Text())
	}
	r.empty(sub, filepath.Join(rel, name))
	return unlessGone(dir.Remove(name))
}

func (r *remover) fail(err error) {
	if r.failed == nil {
		r.failed = unlessGone(err)
	}
}

func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// openFolder opens a folder, also one that a task has made read-only, but no link.
func openFolder(in *os.Root, name string) (*os.Root, error) {
	info, err := in.Lstat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() && info.Mode()&0o700 != 0o700 {
		_ = in.Chmod(name, 0o700) // OpenRoot or Remove reports it
	}
	dir, err := in.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := dir.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("it was replaced")}
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
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
		if e := w.discard(ctx); e != nil {
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
	if err := r.removeAdmin(ctx, id); err != nil {
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
