package worktree

import (
	"context"
	"strings"
)

// Changes are the differences between the base of a worktree and its files.
type Changes struct {
	Base      string // commit that they are relative to
	Tree      string // the files as a tree; it is stored only by Commit, which checks it
	TaskHead  string // commit of the HEAD of the worktree, "" if a task broke it
	HeadMoved bool   // the task has committed, or checked out another branch
	Files     []File // the first files by name, at most maxListed
	Total     int    // number of changed files
	Diff      Diff   // between Base and Tree
}

// A File is a changed file. Ignored files are not changes.
type File struct {
	Path   string // relative, with slashes; bytes as in the file system, not always UTF-8
	Status byte   // 'A' added, 'D' deleted, 'M' modified, 'T' became a file, a link or a submodule
	Mode   string // octal mode of git after the change: 100644, 100755, 120000; 000000 if deleted
}

// maxListed bounds Changes.Files.
const maxListed = 10_000

// Changes compares the files of the worktree, also untracked ones, with its base. Every
// file is read once. Nothing is stored in the repository. At most limit bytes of the diff
// are returned; there is none for 0.
//
// Errors match ErrContent, ErrTooLarge, ErrGone or ErrGit.
func (w *Worktree) Changes(ctx context.Context, limit int) (Changes, error) {
	changes := Changes{Base: w.record.Base}
	p, err := w.repo.private()
	if err != nil {
		return changes, err
	}
	defer p.close()
	if changes.TaskHead, err = w.taskHead(ctx, p); err != nil {
		return changes, err
	}
	changes.HeadMoved = changes.TaskHead != w.record.Head
	if branch, err := readHead(w.admin()); err != nil || branch != w.record.Branch {
		changes.HeadMoved = true
	}
	if changes.Tree, err = w.snapshot(ctx, p); err != nil {
		return changes, err
	}
	err = p.compare(ctx, w.record.Base, changes.Tree, func(f File) error {
		if changes.Total++; len(changes.Files) < maxListed {
			changes.Files = append(changes.Files, f)
		}
		return nil
	})
	if err == nil && limit > 0 {
		changes.Diff, err = p.diff(ctx, w.record.Base, changes.Tree, limit)
	}
	return changes, err
}

// taskHead returns the commit of the HEAD of the worktree.
func (w *Worktree) taskHead(ctx context.Context, p *private) (string, error) {
	data, err := readData(w.admin() + "/HEAD")
	if err != nil {
		return "", nil
	}
	head := strings.TrimSpace(string(data))
	if ref, ok := strings.CutPrefix(head, "ref: "); ok {
		branch, ok := strings.CutPrefix(ref, "refs/heads/")
		if !ok || CheckBranch(branch) != nil {
			return "", nil
		}
		return p.resolve(ctx, ref)
	}
	if !isHash(head) {
		return "", nil
	}
	return p.resolve(ctx, head)
}

// compare calls each for every difference between two trees, in the order of names.
func (p *private) compare(ctx context.Context, old, new string, each func(File) error) error {
	return p.differences(ctx, old, new, func(d difference) error { return each(d.File) })
}

// A difference is a File with its mode before the change, and its objects.
type difference struct {
	File
	oldMode, old, new string
}

// Modes of a [File] that does not exist, and of a submodule.
const (
	modeNone   = "000000"
	modeModule = "160000"
)

// differences is compare with objects.
func (p *private) differences(ctx context.Context, old, new string, each func(difference) error) error {
	var d difference
	name := false
	return p.each(ctx, call{}, func(record string) error {
		if name = !name; !name {
			d.Path = record
			return each(d)
		}
		// :100644 100755 0123… 4567… M
		fields := strings.Fields(record)
		if len(fields) != 5 {
			return problem(ErrGit, "git diff-tree: unexpected entry %q", oneLine(record, 100))
		}
		d = difference{File{Mode: fields[1], Status: fields[4][0]}, strings.TrimPrefix(fields[0], ":"), fields[2], fields[3]}
		return nil
	}, "diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", old, new, "--")
}

// Diff is a unified diff, cut at a limit. Binary files, and files of more than 32 MiB, are
// named without their content.
type Diff struct {
	Text string // the beginning; bytes as in the files, not always UTF-8
	Size int64  // bytes of the whole diff; more than len(Text) if it was cut
}

// DiffCommits returns at most limit bytes of the diff between two commits of the
// repository. Memory is bounded by the limit here, and by the size of one file in git.
func (r *Repository) DiffCommits(ctx context.Context, old, new string, limit int) (Diff, error) {
	if !isHash(old) || !isHash(new) {
		return Diff{}, problem(ErrName, "commits %q and %q: give all of their digits", oneLine(old, 70), oneLine(new, 70))
	}
	p, err := r.private()
	if err != nil {
		return Diff{}, err
	}
	defer p.close()
	return p.diff(ctx, old, new, limit)
}

func (p *private) diff(ctx context.Context, old, new string, limit int) (Diff, error) {
	out := &headWriter{limit: max(0, limit)}
	_, err := p.git(ctx, call{stdout: out}, "diff-tree", "-r", "-p", "--full-index", "--no-color", "--no-renames", "--no-ext-diff", "--no-textconv",
		"--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=none", "--submodule=short", old, new, "--")
	if err != nil {
		return Diff{}, err
	}
	return Diff{Text: string(out.head), Size: out.total}, nil
}
