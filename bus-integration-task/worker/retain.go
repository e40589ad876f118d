package worker

import (
	"context"
	"errors"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/runner"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worktree"
)

// cleanUp removes the worktree as the policy says.
func (a *attempt) cleanUp(ctx context.Context) {
	if a.tree == nil {
		return
	}
	cleaning, cancel := bounded(ctx, cleanUp)
	defer cancel()
	if a.keepTree(cleaning, context.Cause(ctx)) {
		if err := a.tree.Retain(); err != nil {
			a.warn("cannot retain the worktree: " + err.Error())
		}
		a.left = !a.promoted
		if a.ended == "" {
			a.logger().Info("retained a worktree", "task", a.state.Ref, "worktree", a.tree.Path())
		}
		return
	}
	err := a.tree.Remove(cleaning, true)
	if errors.Is(err, worktree.ErrDiverged) { // its branch has work that was not promoted, and is kept
		a.left = true
		err = a.tree.Remove(cleaning, false)
	}
	if err == nil && !a.promoted && a.ended != "" {
		err = a.claim.Report(cleaning, task.Message, task.Payload{Text: "removed isolated worktree without promotion"})
	}
	if err != nil {
		a.warn("cannot clean up the worktree: " + err.Error())
	}
}

// keepTree reports whether the worktree stays after an attempt whose context has ended with
// cause, if it has.
func (a *attempt) keepTree(ctx context.Context, cause error) bool {
	switch {
	case a.promoted:
		return a.Settings.TerminalWorktrees == "retain"
	case a.replaced:
		return false
	case !a.hasWork(ctx):
		return a.reused && a.ended != task.Done // earlier attempts may have left ignored files
	case a.reused, a.ended == task.Done, errors.Is(cause, ErrStopping): // its changes are nowhere else, and will be continued
		return true
	}
	return a.Settings.BlockedWorktrees == "retain"
}

// hasWork reports whether the worktree differs from its base, also if that is not known.
func (a *attempt) hasWork(ctx context.Context) bool {
	if !a.measured {
		changes, err := a.tree.Changes(ctx, 0)
		a.measured, a.changed = true, err != nil || changes.Total > 0
	}
	return a.changed
}

// withWorktree adds what the attempt has left to its end, so that the next one continues it.
func (a *attempt) withWorktree(end End) End {
	if a.left {
		p := &end.Payload
		p.Branch, p.CreateBranch, p.BaseBranch = a.tree.Branch(), a.tree.Created(), a.tree.BaseBranch()
		p.WorktreeID, p.ReuseWorktree = a.tree.ID(), true
	}
	return end
}

// Prune removes what lost workers have left: the folders of their agents for temporary
// files, and the worktrees of the repository of the recipient that no process holds and
// that were not retained. It takes at most a minute.
func (b *Bridge) Prune(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanUp)
	defer cancel()
	temporary := instructions.Locations{TempDirs: runner.TempDirs(b.Environ)}
	for _, f := range temporary.RemoveStale(ctx, 0) {
		b.logger().Info("removed a folder of a lost worker", "folder", f.Path, "error", f.Err)
	}
	if !b.Settings.Worktree {
		return nil
	}
	repository, err := b.repositoryOf(ctx, b.Settings.Recipient)
	if err != nil {
		return err
	}
	removed, err := repository.Prune(ctx, func(s worktree.Stale) bool { return !s.Retained })
	if len(removed) > 0 {
		b.logger().Info("removed worktrees of lost workers", "worktrees", removed)
	}
	return err
}
