package runs

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

func Command(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:  "runs",
		Usage: "look at the records of runs",
		Description: `Shows what "run --record" has kept, and what other programs have that write
records of the Agent Protocol.

A run is called by its ID, the beginning or the end of one ID, or "latest"; before
it may stand its task, or its project and task: PROJECT/TASK/latest. The folder of
a run is a name of it, too.

The states of runs are running, completed, failed, crashed (its program is gone and
has not said how it ended) and unknown (it says running, but is of another machine
or container, or of before this machine was started; or its status is another word).`,
		Subcommands: []*urfave.Command{
			runsListCommand(prog),
			runsShowCommand(prog),
			runsTailCommand(prog),
			runsOutputCommand(prog),
			runsEventsCommand(prog),
			runsReportCommand(prog),
			runsExportCommand(prog),
			runsPruneCommand(prog),
		},
		UsageText: cmdline.UsageText(`# what ran here?
bus-agent runs list
# what did the last run say?
bus-agent runs output latest
# watch it work
bus-agent runs tail --follow latest`,
			"the command succeeded"),
		Action: prog.Group,
	}
}

// runsStore returns the records in the folder of --runs-root, or in the one that is
// meant without it.
func runsStore(prog *cmdline.Program, root string) (*runs.Records, error) {
	dir, err := run.RecordsRoot(prog, root)
	if err != nil {
		return nil, err
	}
	return &runs.Records{Root: filepath.Clean(dir)}, nil
}

// findRun returns the run that a handle names, and its store.
func findRun(prog *cmdline.Program, ctx context.Context, root string, handle string) (*runs.Records, *runs.Run, error) {
	store, err := runsStore(prog, root)
	if err != nil {
		return nil, nil, err
	}
	run, err := store.Find(ctx, handle)
	if err != nil {
		return nil, nil, cmdline.CanceledBy(ctx, err)
	}
	return store, &run, nil
}

// runFilter are the flags that choose runs, as they were given.
type runFilter struct {
	root                                   string
	project, task, status, runtime, parent string
	since, olderThan                       string
}

func (f *runFilter) flags(prog *cmdline.Program) []urfave.Flag {
	return []urfave.Flag{
		cmdline.Option("project", "only runs of the project `ID`", &f.project),
		cmdline.Option("task", "only runs of the task `ID`", &f.task),
		cmdline.Option("status", "only runs that are `STATUS`: running, completed, failed, crashed or unknown", &f.status).Of(cmdline.Words(runStatuses...)),
		cmdline.Option("runtime", "only runs of `RUNTIME`; one without a variant is for all of its variants", &f.runtime).Of(prog.Stored.Registry.Tokens),
		cmdline.Option("parent-run", "only runs that the run `ID` started", &f.parent),
		cmdline.Option("since", "only runs that began after `WHEN`: an age such as 90m, 36h, 7d or 2w, or a date", &f.since),
		cmdline.Option("older-than", "only runs that began before `WHEN`", &f.olderThan),
		run.RecordsFlag(&f.root),
	}
}

var runStatuses = []runs.Status{runs.StatusRunning, runs.StatusCompleted, runs.StatusFailed, runs.StatusCrashed, runs.StatusUnknown}

// given reports whether a flag chooses runs.
func (f *runFilter) given() bool {
	return f.project != "" || f.task != "" || f.status != "" || f.runtime != "" || f.parent != "" || f.since != "" || f.olderThan != ""
}

// filter returns what the flags choose.
func (f *runFilter) filter(now time.Time) (filter runs.Filter, err error) {
	filter = runs.Filter{
		Project: f.project, Task: f.task, Parent: f.parent, Runtime: f.runtime, Status: runs.Status(f.status),
	}
	if f.status != "" && !slices.Contains(runStatuses, filter.Status) {
		return filter, agent.Usagef("status %q is not one of running, completed, failed, crashed, unknown", f.status)
	}
	if filter.Since, err = moment("since", f.since, now); err == nil {
		filter.Until, err = moment("older-than", f.olderThan, now)
	}
	return filter, err
}

// moment returns the time that a flag names: an age, or a date with a time of day
// or without. It is zero where the flag is not given.
func moment(flag string, v string, now time.Time) (time.Time, error) {
	if v == "" {
		return time.Time{}, nil
	}
	if age, ok := parseAge(v); ok {
		return now.Add(-age), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, v, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, agent.Usagef("--%s %q is neither an age such as 36h or 7d nor a date such as 2026-01-31", flag, v)
}

// parseAge reads a duration, which may be of whole days or weeks.
func parseAge(text string) (time.Duration, bool) {
	const day = 24 * time.Hour
	for unit, length := range map[string]time.Duration{"d": day, "w": 7 * day} {
		if digits, ok := strings.CutSuffix(text, unit); ok {
			n, err := strconv.ParseUint(digits, 10, 16)
			return time.Duration(n) * length, err == nil && n <= uint64(math.MaxInt64/length)
		}
	}
	age, err := time.ParseDuration(text)
	return age, err == nil && age >= 0
}

// choose returns the runs that the flags choose and says what could not be read.
func choose(prog *cmdline.Program, ctx context.Context, store *runs.Records, filter runs.Filter) ([]runs.Run, error) {
	list, problems, err := store.List(ctx, filter)
	if err != nil {
		return nil, cmdline.CanceledBy(ctx, &cmdline.Failure{Text: "the runs in " + cmdline.Printable(store.Root) + " cannot be listed", Err: cmdline.Cause(err)})
	}
	warnProblems(prog, problems)
	return list, nil
}

// warnProblems names records that cannot be read.
func warnProblems(prog *cmdline.Program, problems []error) {
	const most = 10
	for _, problem := range problems[:min(most, len(problems))] {
		prog.Screen.Warn("not listed: " + cmdline.OneWord(problem.Error()))
	}
	if more := len(problems) - most; more > 0 {
		prog.Screen.Warn(fmt.Sprintf("not listed: %s that cannot be read", cmdline.Count(more, "more record", "more records")))
	}
}

// runWords completes a run.
func runWords(prog *cmdline.Program, root *string, several bool) func([]string) []string {
	return func(done []string) []string {
		if len(done) > 0 && !several {
			return nil
		}
		store, err := runsStore(prog, *root)
		if err != nil {
			return nil
		}
		const most = 100
		list, _, _ := store.List(context.Background(), runs.Filter{Limit: most}) // nobody reads an error while typing
		words := []string{runs.Latest + "\tthe run that began last"}
		for i := range list {
			r := &list[i]
			words = append(words, handleOf(r)+"\t"+cmdline.OneWord(r.Agent+" "+string(r.Status)+" "+r.ProjectID+"/"+r.TaskID))
		}
		return words
	}
}

// handleOf returns what a run is called by: its folder, which is named by its ID.
func handleOf(r *runs.Run) string { return cmdline.OneWord(filepath.Base(r.Dir)) }

// pathOf returns the handle that is unique among all runs of a root.
func pathOf(r *runs.Run) string {
	task := filepath.Dir(filepath.Dir(r.Dir))
	return cmdline.OneWord(filepath.Join(filepath.Base(filepath.Dir(task)), filepath.Base(task), filepath.Base(r.Dir)))
}

// took is a duration for people, "-" where nobody knows.
func took(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < time.Second:
		return max(d.Round(time.Millisecond), time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
