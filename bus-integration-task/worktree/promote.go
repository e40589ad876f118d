package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/busdk/bus-integration-task/internal/unix"
)

// A Promotion is what [Worktree.Promote] has done.
type Promotion struct {
	Commit string // contained in the base branch now
	Moved  bool   // false: the base branch contained it already
	// RebasedFrom is the commit of the worktree that Commit replaces, "" if Commit is that
	// commit itself. The files of Commit were never together in a worktree, so what was
	// tested there is not what has landed.
	RebasedFrom string
}

// Promote promotes the last commit of the bridge to the base branch, as
// [Repository.Promote] does. It must not run before the worktree has one.
//
// With rebase, a base branch that has moved since the worktree was added, and only by
// other commits of the bridge, is accepted: the commits of the worktree become one new
// commit on top of it, if git merges their files without conflict. The lock is held
// meanwhile. Git's own merge of lines is used, without merge drivers and attributes. The
// message of the new commit ends with a line that names the commit of the worktree, which
// stays on the branch of the worktree until that is removed. Errors match ErrDiverged where a user
// has moved the branch, ErrConflict where the files conflict; nothing has changed then.
func (w *Worktree) Promote(ctx context.Context, rebase bool, announce func(ctx context.Context, commit string) error) (Promotion, error) {
	done := Promotion{Commit: w.record.Head}
	var replace func(context.Context, *private, string) (string, error)
	if rebase {
		replace = func(ctx context.Context, p *private, tip string) (string, error) {
			commit, err := w.rebase(ctx, p, tip)
			done = Promotion{Commit: commit, RebasedFrom: w.record.Head}
			return commit, err
		}
	}
	var err error
	done.Moved, err = w.repo.promote(ctx, w.record.BaseBranch, w.record.Head, replace, announce)
	w.promoted = err == nil && done.RebasedFrom == ""
	if done.Moved && done.RebasedFrom != "" {
		w.record.Landed = w.record.Head
		err = errors.Join(err, w.save())
	}
	return done, err
}

// Promote moves the branch of the primary checkout, its index and its files forward to
// commit, and reports whether it had to. It holds the lock of the repository, which is
// released when the process dies, and waits for it at most Config.LockWait.
//
// Before anything moves, and after all checks, it calls announce with the lock held; its
// error ends the promotion and is returned. It is not called for a commit that the branch
// contains already.
//
// Refused are a primary that is on another branch than the given one (ErrBranch), that has
// changes in tracked files, files in the way of new ones, also ignored ones, or a merge,
// rebase or another git process in progress (ErrDirty), and a branch that has commits
// which commit has not (ErrDiverged). Submodules count only where commit changes them.
// Nothing has changed then, and the branch of the worktree is kept.
//
// The branch is moved in one step: what is killed before it has promoted nothing, what is
// killed after it has promoted the commit. Index and files follow. The next Promote or
// [Repository.Contains] completes them; until then they show the state before. While
// index.lock exists, the git of a user refuses to write to the index.
//
// If the files cannot follow, for example on a full disk, branch and files get their
// state of before. Where that is impossible too, the error is returned with moved set;
// the next call completes the rest then. The commit and the branch survive a loss of
// power once Promote has returned. Files of the checkout that the disk has not stored
// then are restored by git checkout.
func (r *Repository) Promote(ctx context.Context, branch, commit string, announce func(ctx context.Context, commit string) error) (moved bool, err error) {
	return r.promote(ctx, branch, commit, nil, announce)
}

// promote is Promote. Where the branch has diverged, it promotes what replace returns for
// its tip.
func (r *Repository) promote(ctx context.Context, branch, commit string, replace func(ctx context.Context, p *private, tip string) (string, error), announce func(ctx context.Context, commit string) error) (moved bool, err error) {
	if err := CheckBranch(branch); err != nil {
		return false, err
	}
	if !isHash(commit) {
		return false, problem(ErrName, "commit %q: it is not the name of an object; give all of its digits", oneLine(commit, 70))
	}
	p, err := r.exclusive(ctx)
	if err != nil {
		return false, err
	}
	defer p.close()
	if err := r.lockIndex(); err != nil {
		return false, err
	}
	finished := true
	defer func() {
		if finished {
			r.removeIndexLock()
		}
	}()
	old, err := r.checkPromotion(ctx, p, branch, commit)
	if errors.Is(err, ErrDiverged) && replace != nil {
		commit, err = replace(ctx, p, old)
	}
	if err != nil || old == commit {
		return false, err
	}
	if contained, err := p.isAncestor(ctx, commit, old); err != nil || contained {
		return false, err
	}
	if err := r.checkPrimary(ctx, p, old, commit); err != nil {
		return false, err
	}
	if announce != nil {
		if err := announce(ctx, commit); err != nil {
			return false, err
		}
		// It may have taken a while, in which a user has worked.
		tip, err := r.checkPromotion(ctx, p, branch, commit)
		if err == nil && tip != old {
			err = problem(ErrDiverged, "branch %s: it has moved to %s meanwhile; promote again", branch, tip)
		}
		if err == nil {
			err = r.checkPrimary(ctx, p, old, commit)
		}
		if err != nil {
			return false, err
		}
	}
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	// From here on the context does not stop it.
	ctx = context.WithoutCancel(ctx)
	step("announced")
	j := journal{Branch: branch, Old: old, New: commit}
	if err := errors.Join(r.writeJournal(j), r.reserve(p)); err != nil {
		r.removeJournal()
		return false, problem(ErrGit, "journal of the promotion: %w", err)
	}
	step("journal")
	if r.gitDir == r.common {
		if err := p.setHead("refs/heads/" + branch); err != nil { // for the log of HEAD
			r.removeJournal()
			return false, problem(ErrGit, "state folder: %w", err)
		}
	}
	if err := p.setBranch(ctx, call{hold: p.held}, "fast-forward", branch, commit, old); err != nil {
		tip, e := p.resolve(ctx, "refs/heads/"+branch)
		if e == nil && tip != commit {
			r.removeJournal()
		}
		if e != nil || tip != commit {
			return false, err
		}
	}
	step("branch")
	if err = r.finish(ctx, p, old, commit); err == nil {
		return true, nil
	}
	users, e := r.undo(ctx, p, j)
	if e != nil {
		finished = false
		return true, problem(ErrGit, "primary checkout %s: the branch has moved to %s, but its files have not all followed (%w); repair the cause, the next promotion completes it", r.primary, commit, err)
	}
	if users.total > 0 {
		return false, problem(ErrDirty, "primary checkout %s: %d files have changed while they were promoted (%s); commit, stash or discard them", r.primary, users.total, users)
	}
	return false, problem(ErrGit, "primary checkout %s: its files could not be written, so it was left as it was (%w); repair the cause and promote again", r.primary, err)
}

// step is called after each step of a promotion. Tests kill the process there.
var step = func(string) {}

// exclusive takes the lock of the repository, for one operation on the primary at a time,
// and completes a promotion that was killed. The lock is released with p.
func (r *Repository) exclusive(ctx context.Context) (p *private, err error) {
	if p, err = r.locked(ctx); err != nil {
		return nil, err
	}
	if err := r.recover(ctx, p); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// locked takes the lock alone.
func (r *Repository) locked(ctx context.Context) (p *private, err error) {
	held, err := waitLock(ctx, filepath.Join(r.common, lockName), r.config.LockWait)
	if err != nil {
		return nil, err
	}
	if p, err = r.private(); err != nil {
		unix.Unlock(held)
		return nil, err
	}
	p.held = held
	return p, nil
}

// inProgress are the files of operations that a user has begun and not finished.
var inProgress = []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply", "sequencer"}

// checkPromotion checks what does not need the files, and returns the tip of branch.
func (r *Repository) checkPromotion(ctx context.Context, p *private, branch, commit string) (old string, err error) {
	current, err := r.Branch()
	if err != nil {
		return "", err
	}
	if current == "" {
		return "", problem(ErrBranch, "primary checkout %s: its HEAD is detached; check out %s", r.primary, branch)
	}
	if current != branch {
		return "", problem(ErrBranch, "primary checkout %s: it is on branch %s; check out %s", r.primary, current, branch)
	}
	for _, name := range inProgress {
		if exists(filepath.Join(r.gitDir, name)) {
			return "", problem(ErrDirty, "primary checkout %s: an operation is in progress (%s); finish or abort it", r.primary, name)
		}
	}
	if old, err = p.tip(ctx, branch); err != nil {
		return "", err
	}
	known, err := p.resolve(ctx, commit)
	if err != nil {
		return "", err
	}
	if old == "" || known != commit {
		return "", problem(ErrBranch, "branch %s or commit %s: it does not exist in %s", branch, commit, r.primary)
	}
	forward, err := p.isAncestor(ctx, old, commit)
	if err == nil && !forward {
		forward, err = p.isAncestor(ctx, commit, old)
	}
	if err == nil && !forward {
		err = problem(ErrDiverged, "branch %s: it has moved to %s, which commit %s does not contain; rebase the work or run the task again", branch, old, commit)
	}
	return old, err
}

// finish makes index and files of the primary, which are those of old, those of commit, and
// removes journal and lock.
func (r *Repository) finish(ctx context.Context, p *private, old, commit string) error {
	c := in(r.primary)
	c.hold = p.held
	if _, err := p.git(ctx, c, "read-tree", "-m", "-u", "--no-recurse-submodules", old, commit); err != nil {
		return err
	}
	return r.installIndex(p)
}

// installIndex makes the index of p that of the primary, and removes journal and lock.
func (r *Repository) installIndex(p *private) error {
	step("files")
	temporary := filepath.Join(r.gitDir, "bus-task-index")
	err := copyFile(filepath.Join(p.dir, "index"), temporary)
	if err == nil {
		err = os.Rename(temporary, filepath.Join(r.gitDir, "index"))
	}
	if err != nil {
		os.Remove(temporary)
		return problem(ErrGit, "index of the primary checkout: %w", err)
	}
	step("index")
	r.removeJournal()
	step("unlogged")
	r.removeIndexLock()
	return nil
}

// undo makes the files and the branch of the primary, whose index has not changed, those
// of before a promotion, and returns the files that it left to the user. Branch and journal
// stay if the others cannot be restored.
func (r *Repository) undo(ctx context.Context, p *private, j journal) (*names, error) {
	r.release(p)
	if err := r.copyIndex(ctx, p); err != nil {
		return nil, err
	}
	users, err := r.settle(ctx, p, j, false)
	if err == nil {
		err = p.setBranch(ctx, call{hold: p.held}, "undo", j.Branch, j.Old, j.New)
	}
	if err == nil {
		r.removeJournal()
	}
	return users, err
}
