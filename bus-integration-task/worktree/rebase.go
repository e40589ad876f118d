package worktree

import (
	"context"
	"fmt"
	"strings"
)

// rebase makes one commit on top of tip of the commits of the worktree.
func (w *Worktree) rebase(ctx context.Context, p *private, tip string) (string, error) {
	base, head := w.record.Base, w.record.Head
	diverged := func(why string) error {
		return problem(ErrDiverged, "branch %s: %s; rebase the work or run the task again", w.record.BaseBranch, why)
	}
	forward, err := p.isAncestor(ctx, base, tip)
	if err != nil {
		return "", err
	}
	if !forward {
		return "", diverged(fmt.Sprintf("it has moved to %s, which the base %s of the work is not part of", tip, base))
	}
	const who = "--format=%cn <%ce>"
	committers, err := p.text(ctx, call{}, "rev-list", "--no-commit-header", who, base+".."+tip, "--")
	if err != nil {
		return "", err
	}
	bridge := w.repo.config.Committer
	for committer := range strings.SplitSeq(committers, "\n") {
		if committer != fmt.Sprintf("%s <%s>", bridge.Name, bridge.Email) {
			return "", diverged(fmt.Sprintf("it has moved to %s with a commit by %s, and only commits of tasks are rebased on", tip, oneLine(committer, 100)))
		}
	}
	tree, err := p.merge(ctx, tip, head)
	if err != nil {
		return "", err
	}
	message, err := p.text(ctx, call{}, "rev-list", "--no-commit-header", "--format=%B", base+".."+head, "--")
	if err != nil {
		return "", err
	}
	author, err := p.text(ctx, call{}, "rev-list", "--no-commit-header", "--max-count=1", "--format=%an%n%ae%n%ad", "--date=raw", head, "--")
	if err != nil {
		return "", err
	}
	fields := strings.Split(author, "\n")
	if len(fields) != 3 {
		return "", problem(ErrGit, "commit %s: unexpected author %q", head, oneLine(author, 100))
	}
	commit, err := p.text(ctx, call{
		stdin: strings.NewReader(strings.TrimSpace(message) + "\n\nRebased-from: " + head + "\n"),
		env:   []string{"GIT_AUTHOR_NAME=" + fields[0], "GIT_AUTHOR_EMAIL=" + fields[1], "GIT_AUTHOR_DATE=" + fields[2]},
	}, "commit-tree", "-p", tip, "-F", "-", tree)
	if err == nil {
		err = p.keep()
	}
	return commit, err
}

// merge returns the tree of the merge of two commits.
func (p *private) merge(ctx context.Context, ours, theirs string) (tree string, err error) {
	out := &headWriter{limit: maxText}
	code, err := p.git(ctx, call{stdout: out, ok: []int{1}}, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
	if err != nil {
		return "", err
	}
	fields := strings.Split(string(out.head), "\x00")
	if code == 0 && isHash(fields[0]) {
		return fields[0], nil
	}
	conflicts := &names{}
	for _, name := range fields[1:] {
		if name != "" {
			conflicts.add(name)
		}
	}
	return "", problem(ErrConflict, "commit %s: the primary branch has moved to %s, and both change the same lines of %d files (%s); run the task again", theirs, ours, conflicts.total, conflicts)
}
