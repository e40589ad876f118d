package runs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

// pruneOptions are the flags of "runs prune" as they were given.
type pruneOptions struct {
	runFilter
	keep          int
	dryRun, tasks bool
}

func runsPruneCommand(prog *cmdline.Program) *urfave.Command {
	o := &pruneOptions{keep: -1}
	return &urfave.Command{
		Name:  "prune",
		Usage: "remove old records",
		Description: `Removes the records of the runs that the flags choose, and prints which. At least
one of --older-than, --keep and --status says what is old. A run that goes on is
never removed; one of another machine, or of before this machine was started, only
with --status unknown.

Nothing is removed but folders PROJECT/TASK/runs/RUN that hold a record, and hidden
ones that a killed program has left of such, in the same projects and tasks. The prompt
and the messages of a task stay, unless --tasks removes those of tasks that have no
run any more and no other file.`,
		Flags: append(o.flags(prog),
			cmdline.Number("keep", "keep the newest `N` of the runs that the other flags choose, whatever their age", 0, &o.keep),
			cmdline.Toggle("tasks", "remove the folders of tasks that are left without a run, too", &o.tasks),
			cmdline.Toggle("dry-run", "print what would be removed, and do nothing", &o.dryRun),
		),
		UsageText: cmdline.UsageText(`# what is older than a month?
bus-agent runs prune --older-than 30d --dry-run
# keep the last hundred of a project
bus-agent runs prune --project demo --keep 100`,
			"they were removed; there may have been none", "not all of them could be removed"),
		Action: prog.Action(cmdline.JSON|cmdline.Slow, func(ctx context.Context, _ cmdline.Call) error {
			filter, err := o.filter(time.Now())
			switch {
			case err != nil:
				return err
			case o.olderThan == "" && o.keep < 0 && o.status == "":
				return agent.Usagef("runs prune needs --older-than, --keep or --status; nothing was removed")
			case filter.Status == runs.StatusRunning:
				return agent.Usagef("a run that goes on is never removed; end it first")
			}
			return pruneRuns(prog, ctx, o, filter)
		}),
	}
}

func pruneRuns(prog *cmdline.Program, ctx context.Context, o *pruneOptions, filter runs.Filter) error {
	store, err := runsStore(prog, o.root)
	if err != nil {
		return err
	}
	before := filter.Until
	filter.Until = time.Time{}
	list, err := choose(prog, ctx, store, filter)
	if err != nil {
		return err
	}
	list = list[min(max(o.keep, 0), len(list)):]
	list = slices.DeleteFunc(list, func(r runs.Run) bool { return !before.IsZero() && r.StartTime.After(before) })
	removed := []runs.Run{}
	var failures []error
	if !o.dryRun { // first, because rests keep a task
		failures = append(failures, store.RemoveStale(ctx, filter, filter.Status == runs.StatusUnknown))
	}
	var running, unknown int
	for i := range list {
		r := &list[i]
		if ctx.Err() != nil {
			failures = append(failures, cmdline.StoppedBy(ctx))
			break
		}
		switch {
		case r.Status == runs.StatusRunning:
			running++
			continue
		case r.Status == runs.StatusUnknown && filter.Status != runs.StatusUnknown:
			unknown++
			continue
		}
		if !o.dryRun {
			if err := removeRun(prog, ctx, store, r, o.tasks); err != nil {
				failures = append(failures, err)
				continue
			}
		}
		removed = append(removed, *r)
	}
	if err := printRemoved(prog, removed); err != nil {
		return err
	}
	if running > 0 {
		prog.Screen.Info("kept " + cmdline.Count(running, "run that goes on", "runs that go on"))
	}
	if unknown > 0 {
		prog.Screen.Info("kept " + cmdline.Count(unknown, "run", "runs") + " of which nobody here knows whether they go on; --status unknown removes them")
	}
	if err := errors.Join(failures...); err != nil {
		return &cmdline.Failure{Text: "not everything could be removed", Err: err}
	}
	return nil
}

func removeRun(prog *cmdline.Program, ctx context.Context, store *runs.Records, r *runs.Run, task bool) error {
	if err := store.Remove(ctx, r, r.Status == runs.StatusUnknown); err != nil {
		return err
	}
	if !task {
		return nil
	}
	_, err := store.RemoveTask(r)
	return err
}

func printRemoved(prog *cmdline.Program, removed []runs.Run) error {
	if prog.Global.JSON() {
		return prog.Out.PrintJSON(listed(removed))
	}
	var b strings.Builder
	for i := range removed {
		b.WriteString(pathOf(&removed[i]) + "\n")
	}
	return prog.Out.Print(b.String())
}
