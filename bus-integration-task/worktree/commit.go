package worktree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const maxMessage = 64 << 10

// Commit stores the files of the worktree as one commit on top of Head, moves the branch
// there, and returns it. It does not use the .git of the worktree, nor the HEAD and index
// of the task, and restores all three; a .git that the task has put there is moved out of
// the checkout. Commits that the task made in the worktree are replaced by this one.
//
// Tree is [Changes.Tree] of the files that were examined: others are refused with
// ErrChanged. "" accepts any.
//
// The author is the committer of the configuration by default. Errors match ErrNoChange,
// ErrChanged, ErrName, ErrContent, ErrTooLarge, ErrGone, ErrGit, ErrBranch for a branch
// that became a symbolic reference, or ErrDiverged for one that has commits which were
// not made in the worktree; the branch has not moved then.
func (w *Worktree) Commit(ctx context.Context, tree, message string, author Identity) (string, error) {
	message = strings.TrimSpace(strings.ToValidUTF8(message, "\uFFFD"))
	if message == "" || len(message) > maxMessage || strings.Contains(message, "\x00") {
		return "", problem(ErrName, "commit message: it is empty, longer than %d bytes or has a null byte; give another one", maxMessage)
	}
	if author == (Identity{}) {
		author = w.repo.config.Committer
	}
	if err := author.check(); err != nil {
		return "", err
	}
	if err := w.repo.checkAlternates(w.record.Root); err != nil {
		return "", err
	}
	p, err := w.repo.private()
	if err != nil {
		return "", err
	}
	defer p.close()
	found, err := w.snapshot(ctx, p)
	if err != nil {
		return "", err
	}
	if tree != "" && found != tree {
		return "", problem(ErrChanged, "worktree %s: its files have changed since they were examined; end the processes that write to it, and examine it again", w.record.ID)
	}
	tip, err := w.checkBranch(ctx, p)
	if err != nil {
		return "", err
	}
	before, err := p.text(ctx, call{}, "rev-parse", "--verify", "--end-of-options", w.record.Head+"^{tree}")
	if err != nil {
		return "", err
	}
	if before == found {
		return "", problem(ErrNoChange, "worktree %s: its files are those of commit %s", w.record.ID, w.record.Head)
	}
	c := call{stdin: strings.NewReader(message + "\n"), env: []string{"GIT_AUTHOR_NAME=" + author.Name, "GIT_AUTHOR_EMAIL=" + author.Email}}
	commit, err := p.text(ctx, c, "commit-tree", "-p", w.record.Head, "-F", "-", found)
	if err != nil {
		return "", err
	}
	if err := p.keep(); err != nil {
		return "", err
	}
	return commit, w.moveTo(ctx, p, commit, tip)
}

// checkBranch returns the tip of the branch, and refuses one that would be lost.
func (w *Worktree) checkBranch(ctx context.Context, p *private) (string, error) {
	tip, err := p.tip(ctx, w.record.Branch)
	if err != nil || tip == "" || w.made(tip) {
		return tip, err
	}
	known, err := p.isAncestor(ctx, tip, w.record.Head)
	if err == nil && !known {
		err = problem(ErrDiverged, "branch %s: it has moved to %s, which was not made in worktree %s; rebase the work or run the task again", w.record.Branch, tip, w.record.ID)
	}
	return tip, err
}

// made reports whether the HEAD of the worktree was at commit, which git logs.
func (w *Worktree) made(commit string) bool {
	data, err := readData(filepath.Join(w.admin(), "logs", "HEAD"))
	return err == nil && bytes.Contains(data, []byte(" "+commit+" "))
}

// moveTo makes commit the tip of the branch and the state of the worktree, whose files
// are those of the index of p. The branch moves last, from tip, so an error leaves it.
func (w *Worktree) moveTo(ctx context.Context, p *private, commit, tip string) error {
	before := w.record
	w.record.Head = commit
	err := errors.Join(w.save(), w.restoreHead(), w.restoreLink())
	if err != nil {
		err = problem(ErrGit, "worktree %s: %w", w.record.ID, err)
	} else if err = w.install(p); err == nil {
		err = p.setBranch(ctx, call{}, "commit", w.record.Branch, commit, tip)
	}
	if err != nil {
		w.record = before
		_ = w.save() // a record with the new commit works too
	}
	return err
}

// copyFile copies a regular file, and syncs the copy.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) { // of a process that was killed
		if err := os.Remove(to); err != nil {
			return err
		}
		target, err = os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Sync(), target.Close())
}
