package runs

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/runs"
)

// pruneOptions are the flags of prune.
type pruneOptions struct {
	selection
	keep          int
	dryRun, tasks bool
}

func pruneCommand(prog *cmdline.Program) *urfave.Command {
	o := &pruneOptions{keep: -1}
	return &urfave.Command{
		Name:  "prune",
		Usage: "remove old records",
		Description: `Removes the records of the runs that the flags select, and lists them. Give at least one
of --older-than, --keep and --status. Prune never removes a running run. It removes runs
of unknown status only with --status unknown.

Prune removes only folders PROJECT/TASK/runs/RUN that hold a record, and hidden folders
that killed programs left in the same projects and tasks. It keeps the prompt and the
messages of each task. With --tasks, it removes them too if the task has no run and no
other file.`,
		Flags: append(o.flags(prog),
			cmdline.Number("keep", "keep the newest `N` of the runs that the other flags select, whatever their age", 0, &o.keep),
			cmdline.Switch("tasks", "also remove the folders of tasks without a run", &o.tasks),
			cmdline.Switch("dry-run", "print what would be removed, and do nothing", &o.dryRun),
		),
		UsageText: cmdline.UsageText(`# what is older than a month?
bus-agent runs prune --older-than 30d --dry-run
# keep the last hundred runs of a project
bus-agent runs prune --project demo --keep 100`,
			"the records were removed; there may have been none", "some records could not be removed"),
		Action: prog.Action(cmdline.JSON|cmdline.Slow, func(ctx context.Context, _ cmdline.Call) error {
			switch {
			case o.Until.IsZero() && o.keep < 0 && o.Status == "":
				return cmdline.Misusef("runs prune needs --older-than, --keep or --status; nothing was removed")
			case o.Status == runs.StatusRunning:
				return cmdline.Misusef("a running run is never removed; end it first")
			}
			return prune(ctx, prog, o)
		}),
	}
}

func prune(ctx context.Context, prog *cmdline.Program, o *pruneOptions) error {
	records, err := openRecords(prog, o.root)
	if err != nil {
		return err
	}
	filter, unknown := o.Filter, o.Status == runs.StatusUnknown
	filter.Until = time.Time{} // --keep counts runs of every age
	list, err := choose(ctx, prog, records, filter)
	if err != nil {
		return err
	}
	list = list[min(max(o.keep, 0), len(list)):]
	removed := []runs.Run{}
	var failures []error
	if !o.dryRun { // first, because a stale folder keeps its task
		failures = append(failures, records.RemoveStale(ctx, filter, unknown))
	}
	var keptRunning, keptUnknown int
	var text strings.Builder
	for i := range list {
		r := &list[i]
		if ctx.Err() != nil {
			failures = append(failures, cmdline.StoppedBy(ctx))
			break
		}
		switch {
		case !o.Until.IsZero() && r.StartTime.After(o.Until):
			continue
		case r.Status == runs.StatusRunning:
			keptRunning++
			continue
		case r.Status == runs.StatusUnknown && !unknown:
			keptUnknown++
			continue
		case !o.dryRun:
			if err := remove(ctx, records, r, o.tasks); err != nil {
				failures = append(failures, err)
				continue
			}
		}
		removed = append(removed, *r)
		task := filepath.Dir(filepath.Dir(r.Dir))
		text.WriteString(cmdline.OneWord(filepath.Join(filepath.Base(filepath.Dir(task)), filepath.Base(task), filepath.Base(r.Dir))) + "\n")
	}
	if err := prog.Out.Report(listed(removed), text.String()); err != nil {
		return err
	}
	if keptRunning > 0 {
		prog.Screen.Info("kept " + cmdline.Count(keptRunning, "running run", "running runs"))
	}
	if keptUnknown > 0 {
		prog.Screen.Info("kept " + cmdline.Count(keptUnknown, "run", "runs") + " that may be running on another machine; --status unknown removes them")
	}
	if err := errors.Join(failures...); err != nil {
		return &cmdline.Failure{Text: "not everything could be removed", Err: err}
	}
	return nil
}

// remove removes the record of a run, and with task the folder of its task if it is empty
// then.
func remove(ctx context.Context, records *runs.Records, r *runs.Run, task bool) error {
	err := records.Remove(ctx, r, r.Status == runs.StatusUnknown)
	if err == nil && task {
		_, err = records.RemoveTask(r)
	}
	return err
}
