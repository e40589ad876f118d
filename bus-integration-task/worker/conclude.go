package worker

import (
	"context"
	"errors"

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
	a.measured, a.changed = true, err != nil || len(measured.Files) > 0
	if err != nil {
		return a.failed("cannot compare the worktree with its base", err)
	}
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
		done, err = a.tree.Promote(ctx, a.Settings.Rebase, func(ctx context.Context, commit string) error {
			return a.claim.Announce(ctx, commit, a.tree.BaseBranch())
		})
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
