package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Files of a promotion in the git directory of the primary checkout.
const (
	journalName = "bus-task-promotion.json"
	lockMark    = "bus-integration-task: a promotion is running or was killed; the next one cleans up\n"
)

// A journal says what a promotion that may have been killed was doing.
type journal struct {
	Branch string `json:"branch"`
	Old    string `json:"old"`
	New    string `json:"new"`
}

// lock takes the lock of the repository. Only one promotion runs at a time.
func (r *Repository) lock(ctx context.Context) (*os.File, error) {
	return waitLock(ctx, filepath.Join(r.common, lockName), r.config.LockWait)
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
// index.lock exists, the git of a user refuses to write to the index. An error after the
// branch has moved is returned with moved set; the next call completes the rest then too.
func (r *Repository) Promote(ctx context.Context, branch, commit string, announce func(ctx context.Context, commit string) error) (moved bool, err error) {
	if err := CheckBranch(branch); err != nil {
		return false, err
	}
	if !isHash(commit) {
		return false, problem(ErrName, "commit %q: it is not the name of an object; give all of its digits", oneLine(commit, 70))
	}
	held, err := r.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock(held)
	if err := r.recover(ctx, held); err != nil {
		return false, err
	}
	p, err := r.private(true)
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
			os.Remove(r.indexLock())
		}
	}()
	old, err := r.checkPromotion(ctx, p, branch, commit)
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
	}
	if err := context.Cause(ctx); err != nil {
		return false, err
	}
	// From here on the context does not stop it.
	ctx = context.WithoutCancel(ctx)
	step("announced")
	if err := r.writeJournal(journal{Branch: branch, Old: old, New: commit}); err != nil {
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
	if _, err := p.git(ctx, call{hold: held}, "update-ref", "-m", "bus-integration-task: fast-forward", "refs/heads/"+branch, commit, old); err != nil {
		tip, e := p.resolve(ctx, "refs/heads/"+branch)
		if e == nil && tip != commit {
			r.removeJournal()
		}
		if e != nil || tip != commit {
			return false, err
		}
	}
	step("branch")
	finished = false
	if err := r.finish(ctx, p, held, "-m", old, commit); err != nil {
		return true, err
	}
	return true, nil
}

// step is called after each step of a promotion. Tests kill the process there.
var step = func(string) {}

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
	if old, err = p.resolve(ctx, "refs/heads/"+branch); err != nil {
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
	folders := map[string]bool{".": true} // known not to be in the way
	for name, status := range changed {
		if status != 'A' {
			continue
		}
		for dir := path.Dir(name); !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
			info, err := os.Lstat(filepath.Join(r.primary, dir))
			if err == nil && !info.IsDir() && changed[dir] != 'D' {
				return inWay(dir)
			}
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
	// Also files that the user has told git to take for unchanged.
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

// finish makes index and files of the primary those of commit, and removes journal and
// lock. How is -m with the old and the new commit, or --reset with the new one.
func (r *Repository) finish(ctx context.Context, p *private, held *os.File, how string, commits ...string) error {
	c := in(r.primary)
	c.hold = held
	args := []string{"read-tree", how, "-u", "--no-recurse-submodules"}
	if _, err := p.git(ctx, c, append(args, commits...)...); err != nil {
		return problem(ErrGit, "primary checkout %s: the branch has moved to %s, but its files have not all followed (%w); repair the cause, the next promotion completes it", r.primary, commits[len(commits)-1], err)
	}
	step("files")
	temporary := filepath.Join(r.gitDir, "bus-task-index")
	err := copyFile(filepath.Join(p.dir, "index"), temporary)
	if err == nil {
		err = os.Rename(temporary, filepath.Join(r.gitDir, "index"))
	}
	if err != nil {
		return problem(ErrGit, "index of the primary checkout: %w", err)
	}
	step("index")
	r.removeJournal()
	step("unlogged")
	os.Remove(r.indexLock())
	return nil
}

func (r *Repository) writeJournal(j journal) error {
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return writeData(filepath.Join(r.gitDir, journalName), data)
}

func (r *Repository) removeJournal() { os.Remove(filepath.Join(r.gitDir, journalName)) }

// recover completes or forgets a promotion whose process was killed. The lock is held, so
// no other one is running.
func (r *Repository) recover(ctx context.Context, held *os.File) error {
	data, err := readData(filepath.Join(r.gitDir, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return r.removeIndexLock()
	}
	var j journal
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	if err != nil || CheckBranch(j.Branch) != nil || !isHash(j.Old) || !isHash(j.New) {
		return problem(ErrDirty, "%s: the journal of a promotion is damaged; compare the primary checkout with its branch, then remove the file", filepath.Join(r.gitDir, journalName))
	}
	p, err := r.private(true)
	if err != nil {
		return err
	}
	defer p.close()
	tip, err := p.resolve(ctx, "refs/heads/"+j.Branch)
	if err != nil {
		return err
	}
	if current, err := r.Branch(); err != nil || current != j.Branch || tip != j.New {
		// The branch was never moved, or has moved on since.
		r.removeJournal()
		return r.removeIndexLock()
	}
	if !exists(r.indexLock()) {
		if err := r.lockIndex(); err != nil {
			return err
		}
	} else if !r.ownsIndexLock() {
		return problem(ErrDirty, "primary checkout %s: a promotion was killed, and index.lock is of another git process; wait, or remove it", r.primary)
	}
	if err := r.complete(ctx, p, held, j); err != nil {
		return err
	}
	return nil
}

// complete makes index and files those of a promotion whose branch has moved.
func (r *Repository) complete(ctx context.Context, p *private, held *os.File, j journal) error {
	if err := r.copyIndex(ctx, p); err != nil {
		return err
	}
	staged := &names{}
	if err := p.each(ctx, in(r.primary), staged.add, "diff-index", "-z", "--cached", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", j.New, "--"); err != nil {
		return err
	}
	if staged.total == 0 { // the index was the last step
		r.removeJournal()
		return r.removeIndexLock()
	}
	lost := &names{}
	err := p.each(ctx, in(r.primary), func(name string) error {
		same, err := p.isUnfinished(ctx, r.primary, name, j)
		if err != nil || same {
			return err
		}
		return lost.add(name)
	}, "diff-files", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--")
	if err != nil {
		return err
	}
	err = p.compare(ctx, j.Old, j.New, func(f File) error {
		if f.Status != 'A' {
			return nil
		}
		same, err := p.isUnfinished(ctx, r.primary, f.Path, j)
		if err != nil || same {
			return err
		}
		return lost.add(f.Path)
	})
	if err != nil {
		return err
	}
	if lost.total > 0 {
		return problem(ErrDirty, "primary checkout %s: a promotion was killed, and %d of its files have changed since (%s); restore them with git checkout", r.primary, lost.total, lost)
	}
	return r.finish(ctx, p, held, "--reset", j.New)
}

// isUnfinished reports whether a file of the primary has the old content, or the new one
// or the beginning of it, as a killed checkout leaves it.
func (p *private) isUnfinished(ctx context.Context, primary, name string, j journal) (bool, error) {
	full := filepath.Join(primary, name)
	info, err := os.Lstat(full)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil || info.IsDir() {
		return err == nil, nil
	}
	entry, err := p.text(ctx, call{}, "ls-tree", "-z", j.New, "--", name)
	if err != nil {
		return false, err
	}
	fields := strings.Fields(strings.SplitN(entry, "\t", 2)[0])
	if len(fields) != 3 || fields[1] != "blob" {
		return false, nil
	}
	compared := &prefixWriter{}
	if info.Mode().IsRegular() {
		f, err := os.Open(full)
		if err != nil {
			return false, nil
		}
		defer f.Close()
		compared.file = f
	} else if target, err := os.Readlink(full); err == nil {
		compared.file = strings.NewReader(target)
	} else {
		return false, nil
	}
	// With the conversions of attributes, as in the checkout.
	if _, err := p.git(ctx, call{dir: primary, env: []string{"GIT_WORK_TREE=" + primary}, stdout: compared}, "cat-file", "--filters", "--path="+name, fields[2]); err != nil {
		return false, err
	}
	return compared.isPrefix(), nil
}

// removeIndexLock removes an index.lock of a promotion that was killed.
func (r *Repository) removeIndexLock() error {
	if r.ownsIndexLock() {
		os.Remove(r.indexLock())
	}
	return nil
}

func (r *Repository) ownsIndexLock() bool {
	data, err := readData(r.indexLock())
	return err == nil && string(data) == lockMark
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
