package worktree

import (
	"context"
	"io/fs"
	"strconv"
	"strings"
)

// ReadBase returns a regular file of the base commit of the worktree, named by its path
// with slashes. The error matches fs.ErrNotExist if the commit has no such file, and
// ErrTooLarge if it has more than limit bytes, of which there can be a mebibyte.
func (w *Worktree) ReadBase(ctx context.Context, name string, limit int64) (string, error) {
	p, err := w.repo.private()
	if err != nil {
		return "", err
	}
	defer p.close()
	entry, err := p.text(ctx, call{}, "ls-tree", "-z", "-l", "--full-tree", w.record.Base, "--", name)
	if err != nil {
		return "", err
	}
	info, _, _ := strings.Cut(entry, "\t")
	fields := strings.Fields(info) // 100644 blob 0123… 12
	if len(fields) != 4 || fields[1] != "blob" || !strings.HasPrefix(fields[0], "100") {
		return "", problem(fs.ErrNotExist, "%s: it is not a file of commit %s", oneLine(name, 200), w.record.Base)
	}
	if size, err := strconv.ParseInt(fields[3], 10, 64); err != nil || size > min(limit, maxText) {
		return "", problem(ErrTooLarge, "%s: it has %s bytes", oneLine(name, 200), fields[3])
	}
	out := &headWriter{limit: maxText}
	if _, err := p.git(ctx, call{stdout: out}, "cat-file", "blob", fields[2]); err != nil {
		return "", err
	}
	return string(out.head), nil
}

// State returns a text that changes with the commit, the branch and the files of the
// primary checkout, ignored files apart. Every file is read.
//
// Errors are those of [Worktree.Changes].
func (r *Repository) State(ctx context.Context) (string, error) {
	p, err := r.private()
	if err != nil {
		return "", err
	}
	defer p.close()
	head, err := readData(r.gitDir + "/HEAD")
	if err != nil {
		return "", problem(ErrGit, "%w", err)
	}
	commit := strings.TrimSpace(string(head))
	if ref, ok := strings.CutPrefix(commit, "ref: "); ok {
		if commit, err = p.resolve(ctx, ref); err != nil {
			return "", err
		}
	}
	if commit == "" {
		return "", problem(ErrUnsupported, "%s: it has no commit", r.primary)
	}
	primary := &Worktree{repo: r, record: record{Path: r.primary, Head: commit}}
	tree, err := primary.snapshot(ctx, p)
	return string(head) + commit + " " + tree, err
}
