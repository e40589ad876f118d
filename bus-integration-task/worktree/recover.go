package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Files in the git directory of the primary checkout. Those of worktrees have a reserve too.
const (
	journalName = "bus-task-promotion.json"
	reserveName = "bus-task-reserve"
)

// A journal says what a promotion that may have been killed was doing.
type journal struct {
	Branch string `json:"branch"`
	Old    string `json:"old"`
	New    string `json:"new"`
}

func (r *Repository) writeJournal(j journal) error {
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return writeData(filepath.Join(r.gitDir, journalName), data)
}

func (r *Repository) removeJournal() {
	os.Remove(filepath.Join(r.gitDir, reserveName))
	os.Remove(filepath.Join(r.gitDir, journalName))
}

// reserve writes files whose space [Repository.undo] gets when the disk is full.
func (r *Repository) reserve(p *private) error {
	info, err := os.Stat(filepath.Join(p.dir, "index"))
	if err != nil {
		return err
	}
	space := make([]byte, 64<<10+2*info.Size())
	return errors.Join(writeData(filepath.Join(p.dir, reserveName), space), writeData(filepath.Join(r.gitDir, reserveName), space))
}

// release makes the reserved space free.
func (r *Repository) release(p *private) {
	os.Remove(filepath.Join(p.dir, reserveName))
	os.Remove(filepath.Join(r.gitDir, reserveName))
}

// recover completes or forgets a promotion whose process was killed. The lock is held, so
// no other one is running. Where a user must act first, the journal stays, and index.lock
// does not: the user's git needs it.
func (r *Repository) recover(ctx context.Context, p *private) (err error) {
	defer func() {
		if errors.Is(err, ErrDirty) {
			r.removeIndexLock()
		}
	}()
	data, err := readData(filepath.Join(r.gitDir, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		r.removeIndexLock()
		return nil
	}
	var j journal
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	if err != nil || CheckBranch(j.Branch) != nil || !isHash(j.Old) || !isHash(j.New) {
		return problem(ErrDirty, "%s: the journal of a promotion is damaged; compare the primary checkout with its branch, then remove the file", filepath.Join(r.gitDir, journalName))
	}
	tip, err := p.resolve(ctx, "refs/heads/"+j.Branch)
	if err != nil {
		return err
	}
	if current, err := r.Branch(); err != nil || current != j.Branch || tip != j.New {
		// The branch was never moved, or has moved on since.
		r.forget()
		return nil
	}
	if !exists(r.indexLock()) {
		if err := r.lockIndex(); err != nil {
			return err
		}
	} else if !r.ownsIndexLock() {
		return problem(ErrDirty, "primary checkout %s: a promotion was killed, and index.lock is of another git process; wait, or remove it", r.primary)
	}
	return r.complete(ctx, p, j)
}

// forget ends a promotion whose files need nothing more.
func (r *Repository) forget() {
	r.removeJournal()
	r.removeIndexLock()
}

// complete makes index and files those of a promotion whose branch has moved.
func (r *Repository) complete(ctx context.Context, p *private, j journal) error {
	if err := r.copyIndex(ctx, p); err != nil {
		return err
	}
	staged, err := p.staged(ctx, j.Old)
	if err != nil {
		return err
	}
	behind, err := p.staged(ctx, j.New)
	if err != nil {
		return err
	}
	finished, users := true, &names{} // the index was the last step
	err = p.compare(ctx, j.Old, j.New, func(f File) error {
		finished = finished && !behind[f.Path]
		if behind[f.Path] && staged[f.Path] {
			return users.add(f.Path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if finished {
		r.forget()
		return nil
	}
	if users.total == 0 {
		users, err = r.settle(ctx, p, j, true)
	}
	if err == nil && users.total > 0 {
		return problem(ErrDirty, "primary checkout %s: a promotion was killed, and %d of its files have changed since (%s); copy what you need, and restore them with git checkout HEAD", r.primary, users.total, users)
	}
	if err == nil {
		err = r.installIndex(p)
	}
	if err != nil && !errors.Is(err, ErrDirty) {
		err = problem(ErrGit, "primary checkout %s: the branch has moved to %s, but its files have not all followed (%w); repair the cause, the next promotion completes it", r.primary, j.New, err)
	}
	return err
}

// staged returns the paths in which the index of p differs from a commit.
func (p *private) staged(ctx context.Context, commit string) (map[string]bool, error) {
	paths := make(map[string]bool)
	err := p.each(ctx, in(p.repo.primary), func(name string) error {
		paths[name] = true
		return nil
	}, "diff-index", "-z", "--cached", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", commit, "--")
	return paths, err
}
