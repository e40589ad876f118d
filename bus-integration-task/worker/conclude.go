package worker

import (
	"context"
	"errors"

	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/runner"

	"github.com/busdk/bus-integration-task/closeout"
	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker/settings"
	"github.com/busdk/bus-integration-task/worktree"
)

// conclude judges what the attempt has done, and promotes it.
func (a *attempt) conclude(ctx context.Context) End {
	for _, text := range a.outcome.Undelivered {
		a.report(ctx, task.Message, task.Payload{Text: a.line("this message did not reach the agent: " + text)})
	}
	measured, diff, err := a.measure(ctx)
	if err != nil {
		return a.failed("cannot compare the worktree with its base", err)
	}
	a.changed = len(measured.Files) > 0
	report, verdict := a.judge(ctx, &measured)
	end := a.end(report, measured, verdict)
	if diff != "" {
		end.Payload.Attachments = []task.Attachment{{
			Path: "changes.diff", Size: int64(len(diff)), MediaType: "text/x-diff", Content: diff,
		}}
	}
	if verdict.Outcome != closeout.Done || a.tree == nil || len(measured.Files) == 0 || !a.Settings.Commit {
		return end
	}
	commit, err := a.promote(ctx, report)
	switch {
	case err == nil:
		end.Payload.Commit = commit
		end.Payload.Evidence = a.evidence(report, measured, verdict, commit)
		return end
	case errors.Is(err, ErrLost) || ctx.Err() != nil:
		return End{}
	}
	verdict = closeout.Verdict{Outcome: closeout.Blocked, Reason: a.line("the work is on branch " + a.tree.Branch() + ", but cannot be promoted: " + err.Error())}
	end.Name, end.Payload.Text, end.Payload.Status = task.Blocked, verdict.Reason, string(task.StatusBlocked)
	end.Payload.Evidence = a.evidence(report, measured, verdict, "")
	return end
}

// promote commits the work and moves the branch of the primary checkout to it.
func (a *attempt) promote(ctx context.Context, report *closeout.Closeout) (string, error) {
	values := a.values(a.state.Title, "")
	values["summary"] = a.state.Title
	if report != nil && report.Summary != "" {
		values["summary"] = a.line(report.Summary)
	}
	message, err := settings.ExpandMessage(a.Settings.CommitMessage, values)
	if err != nil {
		return "", err
	}
	// Nothing of Git is touched without a claim: the worker may have been paused past its lease.
	if err := a.claim.Progress(ctx, "committing"); err != nil {
		return "", err
	}
	var commit string
	err = a.step(ctx, "commit", func(ctx context.Context) (err error) {
		commit, err = a.tree.Commit(ctx, a.judged, message, worktree.Identity{})
		return err
	})
	if errors.Is(err, worktree.ErrNoChange) && a.tree.Head() != a.tree.Base() { // an earlier attempt has committed them
		commit, err = a.tree.Head(), nil
	}
	if err != nil {
		return "", err
	}
	var done worktree.Promotion
	err = a.step(ctx, "promote", func(ctx context.Context) error {
		done, err = a.tree.Promote(ctx, a.Settings.Rebase, a.claim.Announce)
		if done.Moved && err != nil { // the next promotion completes it
			a.warn(err.Error())
			return nil
		}
		return err
	})
	a.promoted, a.rebased = err == nil, done.RebasedFrom
	if err == nil {
		commit = done.Commit
	}
	return commit, err
}

// cleanUp removes the worktree as the policy says.
func (a *attempt) cleanUp(ctx context.Context) {
	if a.tree == nil {
		return
	}
	cleaning, cancel := bounded(ctx, cleanUp)
	defer cancel()
	if a.keepTree() {
		if err := a.tree.Retain(); err != nil {
			a.warn("cannot retain the worktree: " + err.Error())
		}
		return
	}
	err := a.tree.Remove(cleaning, true)
	if errors.Is(err, worktree.ErrDiverged) { // its branch has work that was not promoted, and is kept
		err = a.tree.Remove(cleaning, false)
	}
	if err == nil && !a.promoted && a.ended != "" {
		err = a.claim.Report(cleaning, task.Message, task.Payload{Text: "removed isolated worktree without promotion"})
	}
	if err != nil {
		a.warn("cannot clean up the worktree: " + err.Error())
	}
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
