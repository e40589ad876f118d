package cli

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

func (inv *invocation) runsCommand() *urfave.Command {
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
			inv.runsListCommand(),
			inv.runsShowCommand(),
			inv.runsTailCommand(),
			inv.runsOutputCommand(),
			inv.runsEventsCommand(),
			inv.runsReportCommand(),
			inv.runsExportCommand(),
			inv.runsPruneCommand(),
		},
		UsageText: inv.usageText(exitCodes("the command did what it says"),
			example{"what ran here?", "bus-agent runs list"},
			example{"what did the last run say?", "bus-agent runs output latest"},
			example{"watch it work", "bus-agent runs tail --follow latest"},
		),
		Action: inv.group,
	}
}

// runsStore returns the records in the folder of --runs-root, or in the one that is
// meant without it.
func (inv *invocation) runsStore(root string) (*runs.Records, error) {
	dir, err := inv.runsRoot(root)
	if err != nil {
		return nil, err
	}
	return &runs.Records{Root: filepath.Clean(dir)}, nil
}

// findRun returns the run that a handle names, and its store.
func (inv *invocation) findRun(ctx context.Context, root string, handle string) (*runs.Records, *runs.Run, error) {
	store, err := inv.runsStore(root)
	if err != nil {
		return nil, nil, err
	}
	run, err := store.Find(ctx, handle)
	if err != nil {
		return nil, nil, canceledBy(ctx, err)
	}
	return store, &run, nil
}

// runFilter are the flags that choose runs, as they were given.
type runFilter struct {
	root                                   string
	project, task, status, runtime, parent string
	since, olderThan                       string
}

func (f *runFilter) flags(inv *invocation) []urfave.Flag {
	return []urfave.Flag{
		option("project", "only runs of the project `ID`", &f.project),
		option("task", "only runs of the task `ID`", &f.task),
		option("status", "only runs that are `STATUS`: running, completed, failed, crashed or unknown", &f.status).of(words(runStatuses...)),
		option("runtime", "only runs of `RUNTIME`; one without a variant is for all of its variants", &f.runtime).of(inv.stored.registry.Tokens),
		option("parent-run", "only runs that the run `ID` started", &f.parent),
		option("since", "only runs that began after `WHEN`: an age such as 90m, 36h, 7d or 2w, or a date", &f.since),
		option("older-than", "only runs that began before `WHEN`", &f.olderThan),
		runsRootFlag(&f.root),
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
func (inv *invocation) choose(ctx context.Context, store *runs.Records, filter runs.Filter) ([]runs.Run, error) {
	list, problems, err := store.List(ctx, filter)
	if err != nil {
		return nil, canceledBy(ctx, &failure{text: "the runs in " + printable(store.Root) + " cannot be listed", err: cause(err)})
	}
	inv.warnProblems(problems)
	return list, nil
}

// warnProblems names records that cannot be read.
func (inv *invocation) warnProblems(problems []error) {
	const most = 10
	for _, problem := range problems[:min(most, len(problems))] {
		inv.screen.warn("not listed: " + oneWord(problem.Error()))
	}
	if more := len(problems) - most; more > 0 {
		inv.screen.warn(fmt.Sprintf("not listed: %s that cannot be read", count(more, "more record", "more records")))
	}
}

// runWords completes a run.
func (inv *invocation) runWords(root *string, several bool) func([]string) []string {
	return func(done []string) []string {
		if len(done) > 0 && !several {
			return nil
		}
		store, err := inv.runsStore(*root)
		if err != nil {
			return nil
		}
		const most = 100
		list, _, _ := store.List(context.Background(), runs.Filter{Limit: most}) // nobody reads an error while typing
		words := []string{runs.Latest + "\tthe run that began last"}
		for i := range list {
			r := &list[i]
			words = append(words, handleOf(r)+"\t"+oneWord(r.Agent+" "+string(r.Status)+" "+r.ProjectID+"/"+r.TaskID))
		}
		return words
	}
}

// handleOf returns what a run is called by: its folder, which is named by its ID.
func handleOf(r *runs.Run) string { return oneWord(filepath.Base(r.Dir)) }

// pathOf returns the handle that is unique among all runs of a root.
func pathOf(r *runs.Run) string {
	task := filepath.Dir(filepath.Dir(r.Dir))
	return oneWord(filepath.Join(filepath.Base(filepath.Dir(task)), filepath.Base(task), filepath.Base(r.Dir)))
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
