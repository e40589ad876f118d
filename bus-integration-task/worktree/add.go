package worktree

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/busdk/bus-integration-task/internal/unix"
)

// Options describe the worktree of one attempt at a task.
type Options struct {
	// Root is the folder of worktrees: absolute, outside the primary checkout, of the
	// worker alone. It is created.
	Root string
	// Ref names the task. It makes the ID readable, and lets another attempt at the task
	// continue the branch that it has created.
	Ref string
	// Branch is the branch of the task's metadata. With CreateBranch it is the new branch
	// of the worktree. Otherwise it must exist: the worktree continues it, unless it is
	// the base branch or checked out elsewhere; then it is the base, and the worktree gets
	// a new branch with a derived name. "" is the base branch.
	Branch       string
	CreateBranch bool
	// BaseBranch is where a new branch begins and what the work is promoted to, the
	// branch of the primary by default.
	BaseBranch string
	// WorktreeID is the ID of an earlier worktree, which Reuse continues if it still
	// exists. A Branch that exists already is continued then too. One that an earlier
	// attempt at the same task has created is continued without Reuse.
	WorktreeID string
	Reuse      bool
	// Superproject is a folder of the workspace whose .gitmodules names the modules that
	// the worktree gets links to, absolute; the workspace by default.
	Superproject string
	// NoLinks leaves the links out.
	NoLinks bool
}

// A Worktree is an isolated checkout. It belongs to the process that added it until
// Close or Remove; its methods must not be called concurrently.
type Worktree struct {
	repo      *Repository
	record    record
	lock      *os.File
	continued bool
	promoted  bool // its Head is on the base branch
}

// A record is what is stored about a worktree in its git directory.
type record struct {
	ID         string            `json:"id"`
	Ref        string            `json:"ref"`
	Root       string            `json:"root"`              // folder of worktrees
	Path       string            `json:"path"`              // the checkout
	Branch     string            `json:"branch"`            // its branch
	Created    bool              `json:"created,omitempty"` // Branch was created for it
	BaseBranch string            `json:"base_branch"`       // what it is promoted to
	Base       string            `json:"base"`              // commit that changes are relative to
	Head       string            `json:"head"`              // last commit of the bridge, or Base
	Landed     string            `json:"landed,omitempty"`  // Head, once it was promoted as another commit
	Links      map[string]string `json:"links,omitempty"`
	Retained   bool              `json:"retained,omitempty"`
	Unfinished bool              `json:"unfinished,omitempty"` // files may be missing
}

const (
	recordName  = "bus-task.json"
	addLockName = "bus-task-add.lock" // held while a worktree is being registered
)

// ID returns the unique leaf of the worktree.
func (w *Worktree) ID() string { return w.record.ID }

// Path returns the checkout.
func (w *Worktree) Path() string { return w.record.Path }

// Folder returns the folder that holds the checkout and the links to other modules.
func (w *Worktree) Folder() string { return filepath.Join(w.record.Root, w.record.ID) }

// Branch returns the branch that commits go to.
func (w *Worktree) Branch() string { return w.record.Branch }

// Continued reports whether an earlier attempt has worked in the worktree.
func (w *Worktree) Continued() bool { return w.continued }

// Created reports whether the branch was created for the task.
func (w *Worktree) Created() bool { return w.record.Created }

// BaseBranch returns the branch that the work is promoted to.
func (w *Worktree) BaseBranch() string { return w.record.BaseBranch }

// Base returns the commit that changes are relative to.
func (w *Worktree) Base() string { return w.record.Base }

// Head returns the last commit that the bridge made in the worktree, or Base.
func (w *Worktree) Head() string { return w.record.Head }

// admin is the git directory of the worktree, in that of the repository.
func (w *Worktree) admin() string { return w.repo.admin(w.record.ID) }

func (r *Repository) admin(id string) string { return filepath.Join(r.common, "worktrees", id) }

// Close releases the worktree without removing it. Another process can then reuse or
// prune it. The kernel does the same when the process ends.
func (w *Worktree) Close() error { return unix.Unlock(w.lock) }

// Retain is Close for a worktree with work that is nowhere else: [Stale.Retained] is set in
// what Prune reports of it, now and after it was reused. A .git that the task has put there
// is moved out of the checkout, as an operator's git would read its configuration.
//
// After a promotion without rebase, changes are relative to the promoted commit from then on.
func (w *Worktree) Retain() error {
	w.record.Retained = true
	if w.promoted {
		w.record.Base = w.record.Head
	}
	err := w.saveLast()
	if w.checkFolder() == nil { // what is in its place otherwise is not the worktree
		err = errors.Join(err, w.restoreLink())
	}
	return errors.Join(err, w.Close())
}

// Add makes an isolated worktree with a unique ID, on a new branch or on one of the task's
// metadata, or continues an earlier one. The caller must Close or Remove it.
//
// Files are written as they are stored: filters such as those of git-lfs do not run, and
// submodules stay empty or become links, see [Worktree.Links].
//
// Errors match ErrName, ErrBranch, ErrLocked (the worktree to continue stays in use) or
// ErrGit. After an error nothing is left behind.
func (r *Repository) Add(ctx context.Context, o Options) (*Worktree, error) {
	if err := r.checkRoot(&o); err != nil {
		return nil, err
	}
	if o.Reuse && o.WorktreeID != "" {
		w, err := r.reopen(ctx, o)
		if err == nil || !errors.Is(err, ErrGone) {
			return w, err
		}
	}
	if w, err := r.left(ctx, o); w != nil || err != nil {
		return w, err
	}
	p, err := r.private()
	if err != nil {
		return nil, err
	}
	defer p.close()
	w := &Worktree{repo: r, record: record{ID: newLeaf(o.Ref), Ref: oneLine(o.Ref, 200), Root: o.Root, Unfinished: true}}
	// Two attempts for one branch are decided here, as git itself does not lock it.
	guard, err := waitLock(ctx, filepath.Join(r.common, addLockName), r.config.LockWait)
	if err != nil {
		return nil, err
	}
	if err := w.choose(ctx, p, o); err != nil {
		unix.Unlock(guard)
		return nil, err
	}
	w.record.Path = filepath.Join(w.Folder(), checkoutName(r))
	err = w.register()
	unix.Unlock(guard)
	if err == nil {
		err = w.checkOut(ctx, p, o)
	}
	if err != nil {
		_ = w.discard(context.WithoutCancel(ctx)) // err is the reason
		if w.record.Created {
			p.deleteBranch(context.WithoutCancel(ctx), w.record.Branch, w.record.Base)
		}
		return nil, err
	}
	return w, nil
}

// checkoutName is the path of the checkout in the folder of a worktree: that of the module
// in the workspace, so that relative paths between modules stay the same.
func checkoutName(r *Repository) string {
	if r.module == "" {
		return filepath.Base(r.primary)
	}
	return r.module
}

func (r *Repository) checkRoot(o *Options) error {
	if !filepath.IsAbs(o.Root) || filepath.Clean(o.Root) != o.Root || strings.ContainsAny(o.Root, "\n\x00") {
		return problem(ErrName, "folder of worktrees %q: it is not absolute and clean; give an absolute path", oneLine(o.Root, 200))
	}
	if err := os.MkdirAll(o.Root, 0o700); err != nil {
		return problem(ErrGit, "folder of worktrees: %w", err)
	}
	real, err := filepath.EvalSymlinks(o.Root)
	if err != nil {
		return problem(ErrGit, "folder of worktrees: %w", err)
	}
	if within(r.primary, real) || within(r.common, real) || within(real, r.primary) {
		return problem(ErrName, "folder of worktrees %s: it overlaps the primary checkout; choose a folder outside it", real)
	}
	if program, err := filepath.EvalSymlinks(r.program); err != nil || within(real, program) || within(real, r.program) {
		return problem(ErrName, "folder of worktrees %s: git (%s) is in it; correct PATH", real, r.program)
	}
	if within(real, r.config.State) {
		return problem(ErrName, "folder of worktrees %s: the state folder is in it, where tasks may write; choose another one", real)
	}
	if err := checkOwn("folder of worktrees", real); err != nil {
		return err
	}
	o.Root = real
	for _, branch := range []string{o.Branch, o.BaseBranch} {
		if branch != "" {
			if err := CheckBranch(branch); err != nil {
				return err
			}
		}
	}
	if o.WorktreeID != "" {
		return checkLeaf(o.WorktreeID)
	}
	return nil
}

// choose decides the branches and the base, and creates a new branch.
func (w *Worktree) choose(ctx context.Context, p *private, o Options) error {
	r := w.repo
	current, err := r.Branch()
	if err != nil {
		return err
	}
	used, err := r.usedBranches()
	if err != nil {
		return err
	}
	base, branch := o.BaseBranch, o.Branch
	if base == "" {
		base = current
	}
	if branch != "" && !o.CreateBranch && (branch == base || used[branch] || base == "") {
		if o.BaseBranch == "" {
			base = branch
		}
		branch = ""
	}
	if base == "" {
		return problem(ErrBranch, "primary checkout %s: its HEAD is detached; check out a branch or name a base branch", r.primary)
	}
	tip, err := p.tip(ctx, base)
	if err != nil {
		return err
	}
	if tip == "" {
		return problem(ErrBranch, "base branch %q: it does not exist or has no commit; create it", base)
	}
	w.record.BaseBranch, w.record.Base, w.record.Branch = base, tip, branch
	if branch == "" {
		w.record.Branch = "task/" + w.record.ID
	} else {
		existing, err := p.tip(ctx, branch)
		switch {
		case err != nil:
			return err
		case existing == "" && !o.CreateBranch:
			return problem(ErrBranch, "branch %q: it does not exist; create it or set create_branch", branch)
		case existing == "":
		case o.CreateBranch && !o.Reuse && !r.begun(branch, o.Ref):
			return problem(ErrBranch, "branch %q: it exists already; choose another name or reuse it", branch)
		case used[branch]:
			return problem(ErrBranch, "branch %q: it is checked out in another worktree; remove that or choose another branch", branch)
		default:
			return w.resume(ctx, p, o, existing, tip)
		}
	}
	w.record.Head, w.record.Created = tip, true
	zero := strings.Repeat("0", len(tip))
	if err := p.setBranch(ctx, call{}, strings.TrimSpace("begin "+w.record.Ref), w.record.Branch, tip, zero); err != nil {
		return problem(ErrBranch, "branch %q: %w", w.record.Branch, err)
	}
	return nil
}

// resume makes the existing branch of the worktree its head, and its base, if others may have
// committed to it. Where the task itself has created the branch, its commits are work of
// the task, and the base is where they begin.
func (w *Worktree) resume(ctx context.Context, p *private, o Options, existing, tip string) error {
	w.record.Base, w.record.Head = existing, existing
	if !o.CreateBranch || !w.repo.begun(o.Branch, o.Ref) {
		return nil
	}
	w.record.Created = true
	out := &headWriter{limit: maxText}
	code, err := p.git(ctx, call{stdout: out, ok: []int{1}}, "merge-base", existing, tip)
	if base := strings.TrimSpace(string(out.head)); err == nil && code == 0 && isHash(base) {
		w.record.Base = base
	}
	return err
}

// usedBranches returns the branches that are checked out in any worktree.
func (r *Repository) usedBranches() (map[string]bool, error) {
	used := make(map[string]bool)
	dirs := []string{r.common, r.gitDir}
	entries, err := os.ReadDir(filepath.Join(r.common, "worktrees"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, problem(ErrGit, "%w", err)
	}
	for _, e := range entries {
		dirs = append(dirs, r.admin(e.Name()))
		if record, err := r.readRecord(e.Name()); err == nil {
			used[record.Branch] = true // also where the task has switched to another
		}
	}
	for _, dir := range dirs {
		if branch, err := readHead(dir); err == nil {
			used[branch] = true
		}
	}
	return used, nil
}

// register writes the git directory of the worktree. It writes what git worktree add does,
// whose configuration and hooks must not be read.
func (w *Worktree) register() (err error) {
	defer func() {
		if err != nil {
			err = problem(ErrGit, "git directory of the worktree: %w", err)
		}
	}()
	admin := w.admin()
	for err = fs.ErrNotExist; errors.Is(err, fs.ErrNotExist); { // who removes a worktree removes an empty parent
		if err := os.MkdirAll(filepath.Dir(admin), 0o777); err != nil {
			return err
		}
		err = os.Mkdir(admin, 0o777)
	}
	if err != nil {
		return err
	}
	if w.lock, err = lockFile(filepath.Join(admin, lockName)); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"commondir": "../..\n",
		"gitdir":    filepath.Join(w.record.Path, ".git") + "\n",
	} {
		if err := writeData(filepath.Join(admin, name), []byte(text)); err != nil {
			return err
		}
	}
	// Git writes to a log that exists, whatever the configuration of the repository says.
	if err := os.Mkdir(filepath.Join(admin, "logs"), 0o777); err != nil {
		return err
	}
	if err := writeData(filepath.Join(admin, "logs", "HEAD"), nil); err != nil {
		return err
	}
	return errors.Join(w.reserve(), w.restoreHead(), w.save())
}

// restoreHead makes the branch that of the worktree.
func (w *Worktree) restoreHead() error {
	return writeData(filepath.Join(w.admin(), "HEAD"), []byte("ref: refs/heads/"+w.record.Branch+"\n"))
}

// restoreLink makes .git of the checkout what it was. What a task has put there is moved
// next to the checkout, and removed with it.
func (w *Worktree) restoreLink() error {
	name, text := filepath.Join(w.record.Path, ".git"), []byte("gitdir: "+w.admin()+"\n")
	if data, err := readData(name); err == nil && bytes.Equal(data, text) {
		return nil
	}
	if exists(name) {
		aside, err := os.MkdirTemp(w.Folder(), "replaced-")
		if err != nil {
			return err
		}
		if err := os.Rename(name, filepath.Join(aside, "git")); err != nil {
			return err
		}
	}
	return writeData(name, text)
}

// checkOut writes the files of the worktree and makes its links.
func (w *Worktree) checkOut(ctx context.Context, p *private, o Options) error {
	err := os.Mkdir(w.Folder(), 0o755)
	if err == nil {
		err = os.MkdirAll(w.record.Path, 0o755)
	}
	if err == nil {
		err = w.restoreLink()
	}
	if err != nil {
		return problem(ErrGit, "folder of the worktree: %w", err)
	}
	c := in(w.record.Path)
	c.hold = w.lock
	if _, err := p.git(ctx, c, "read-tree", "--reset", "-u", "--no-recurse-submodules", w.record.Head); err != nil {
		return err
	}
	if err := w.install(p); err != nil {
		return err
	}
	if !o.NoLinks {
		if err := w.link(ctx, p, o.Superproject); err != nil {
			return err
		}
	}
	w.record.Unfinished = false
	return w.save()
}

// install makes the index of a private git directory that of the worktree.
func (w *Worktree) install(p *private) error {
	name := filepath.Join(w.admin(), "index")
	temporary := name + ".bus-task"
	err := copyFile(filepath.Join(p.dir, "index"), temporary)
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		os.Remove(temporary)
		return problem(ErrGit, "index of the worktree: %w", err)
	}
	return nil
}

func (w *Worktree) save() error {
	data, err := json.Marshal(w.record)
	if err == nil {
		err = writeData(filepath.Join(w.admin(), recordName), data)
	}
	if err != nil {
		return problem(ErrGit, "record of the worktree: %w", err)
	}
	return nil
}

// reserve writes a file whose space saveLast gets when the disk is full.
func (w *Worktree) reserve() error {
	name := filepath.Join(w.admin(), reserveName)
	if exists(name) {
		return nil
	}
	return writeData(name, make([]byte, 16<<10))
}

// saveLast is save at the end of an attempt, which may have filled the disk: the next one
// must know whether the worktree is kept.
func (w *Worktree) saveLast() error {
	err := w.save()
	if err != nil {
		os.Remove(filepath.Join(w.admin(), reserveName))
		err = w.save()
	}
	return err
}

// readRecord reads and checks the record of a worktree. The error matches ErrGone.
func (r *Repository) readRecord(id string) (record, error) {
	var stored record
	gone := func(why error) (record, error) {
		return record{}, problem(ErrGone, "worktree %q: %w", id, why)
	}
	if err := checkLeaf(id); err != nil {
		return gone(err)
	}
	data, err := readData(filepath.Join(r.admin(id), recordName))
	if err != nil {
		return gone(err)
	}
	if err := json.Unmarshal(data, &stored); err != nil {
		return gone(err)
	}
	ok := stored.ID == id && filepath.IsAbs(stored.Root) && filepath.Clean(stored.Root) == stored.Root &&
		stored.Path == filepath.Join(stored.Root, id, checkoutName(r)) && isHash(stored.Base) && isHash(stored.Head) &&
		!within(r.primary, stored.Root) && !within(stored.Root, r.primary)
	if !ok || CheckBranch(stored.Branch) != nil || CheckBranch(stored.BaseBranch) != nil {
		return gone(errors.New("its record is damaged"))
	}
	return stored, nil
}

// checkFolder reports whether the checkout is where it was made, and is a folder.
func (w *Worktree) checkFolder() error {
	real, err := filepath.EvalSymlinks(w.record.Path)
	if err != nil || real != w.record.Path {
		return problem(ErrGone, "worktree %s: it was removed or replaced by a link; add a new one", w.record.Path)
	}
	if info, err := os.Lstat(real); err != nil || !info.IsDir() {
		return problem(ErrGone, "worktree %s: it is not a folder; add a new one", w.record.Path)
	}
	return nil
}

// reopen continues the worktree of an earlier attempt.
func (r *Repository) reopen(ctx context.Context, o Options) (*Worktree, error) {
	w, err := r.take(ctx, o.WorktreeID, r.config.LockWait)
	if err != nil {
		return nil, err
	}
	if w.record.Root != o.Root {
		w.Close()
		return nil, problem(ErrGone, "worktree %q: it is in another folder than %s", o.WorktreeID, o.Root)
	}
	err = w.checkFolder()
	switch {
	case err != nil:
	case w.record.Unfinished:
		err = problem(ErrGone, "worktree %q: the process that made it was killed", o.WorktreeID)
	default:
		err = w.adopt(o)
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// adopt prepares the worktree of an earlier attempt for another one, whose work must be for
// the same branch.
func (w *Worktree) adopt(o Options) error {
	if o.BaseBranch != "" && o.BaseBranch != w.record.BaseBranch {
		return problem(ErrBranch, "worktree %s: its work is for branch %s, not for %s; leave out the base branch, or begin a new worktree", w.record.ID, w.record.BaseBranch, o.BaseBranch)
	}
	if err := w.reserve(); err != nil {
		return problem(ErrGit, "git directory of the worktree: %w", err)
	}
	return nil
}

// left deals with the worktree that an earlier attempt of the same task has left, so that
// another one can have its new branch: one that was retained is continued, any other is
// removed as [Repository.Prune] does it.
func (r *Repository) left(ctx context.Context, o Options) (*Worktree, error) {
	if !o.CreateBranch || o.Ref == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(filepath.Join(r.common, "worktrees"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, problem(ErrGit, "%w", err)
	}
	for _, e := range entries {
		stored, err := r.readRecord(e.Name())
		if err != nil || stored.Branch != o.Branch || stored.Ref != oneLine(o.Ref, 200) {
			continue
		}
		w, err := r.take(ctx, stored.ID, r.config.LockWait)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		switch {
		case !w.record.Retained || w.record.Unfinished || w.checkFolder() != nil:
			return nil, w.discard(ctx)
		case w.record.Root != o.Root:
			w.Close()
			return nil, problem(ErrBranch, "branch %s: its work is retained in %s, which is not in %s; promote or remove that worktree, or use its folder", o.Branch, w.record.Path, o.Root)
		}
		if err := w.adopt(o); err != nil {
			w.Close()
			return nil, err
		}
		return w, nil
	}
	return nil, nil
}

// take locks an existing worktree, and waits for it at most for the given time.
func (r *Repository) take(ctx context.Context, id string, limit time.Duration) (*Worktree, error) {
	stored, err := r.readRecord(id)
	if err != nil {
		return nil, err
	}
	w := &Worktree{repo: r, record: stored, continued: true}
	if r.waiting != nil {
		r.waiting()
	}
	if w.lock, err = waitLock(ctx, filepath.Join(w.admin(), lockName), limit); err != nil {
		if !errors.Is(err, ErrLocked) && ctx.Err() == nil {
			err = problem(ErrGone, "worktree %q: %w", id, err)
		}
		return nil, err
	}
	if w.record, err = r.readRecord(id); err != nil { // its holder may have changed it
		w.Close()
		return nil, err
	}
	return w, nil
}
