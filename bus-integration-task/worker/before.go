package worker

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/busdk/bus-integration-task/closeout"
	"github.com/busdk/bus-integration-task/internal/unix"
	"github.com/busdk/bus-integration-task/worker/backend"
	"github.com/busdk/bus-integration-task/worktree"
)

// before notes what the work is later compared with.
func (a *attempt) before(ctx context.Context) error {
	if a.tree == nil {
		a.plan = readPlan(a.workdir)
		if a.Settings.AgentBackend != backend.NameContainer { // whose exit code decides
			a.primary, a.primaryErr = a.primaryState(ctx)
		}
		return nil
	}
	// A worktree that is used again has the changes of earlier attempts.
	text, err := a.tree.ReadBase(ctx, planName, maxPlan)
	switch {
	case err == nil:
		a.plan = closeout.PlanItems(text)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, worktree.ErrTooLarge):
		a.plan = closeout.Items{}
	default:
		return err
	}
	return nil
}

// unmeasured returns why the changes of an attempt without a worktree are not known; ""
// if there are none.
func (a *attempt) unmeasured(ctx context.Context) string {
	if a.Settings.AgentBackend == backend.NameContainer {
		return ""
	}
	now, err := a.primaryState(ctx)
	switch err := errors.Join(a.primaryErr, err); {
	case err != nil:
		return a.line("the checkout cannot be compared: " + err.Error())
	case now != a.primary:
		return "files or commits of the checkout changed; use a worktree to have them reported"
	}
	return ""
}

// primaryState returns the state of the checkout of an attempt without a worktree.
func (a *attempt) primaryState(ctx context.Context) (string, error) {
	r, err := a.repositoryOf(ctx, a.state.Recipient)
	if err != nil {
		return "", err
	}
	return r.State(ctx)
}

const (
	planName = "PLAN.md"
	maxPlan  = 1 << 20
)

// readPlan returns the items of the plan in a folder. A link is not a plan.
func readPlan(dir string) closeout.Items {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return closeout.Items{}
	}
	defer root.Close()
	info, err := root.Lstat(planName)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPlan {
		return closeout.Items{}
	}
	f, err := root.Open(planName)
	if err != nil {
		return closeout.Items{}
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPlan))
	if err != nil {
		return closeout.Items{}
	}
	return closeout.PlanItems(string(text))
}

// writtenAt returns when those of files that exist were written or renamed.
func writtenAt(dir string, files []string) map[string]time.Time {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	written := map[string]time.Time{}
	for _, name := range files {
		if info, err := root.Lstat(name); err == nil {
			written[name] = unix.Changed(info)
		}
	}
	return written
}
