package runs

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/runs"
)

func runsListCommand(prog *cmdline.Program) *urfave.Command {
	o := &runFilter{}
	var limit int
	return &urfave.Command{
		Name:  "list",
		Usage: "list runs, newest first",
		Description: `Prints a line for each run: ID, status, runtime, start, duration, project/task.
Records that cannot be read are named on standard error and left out.`,
		Flags: append(o.flags(prog), cmdline.Number("limit,n", "print at most `N` runs, the newest", 1, &limit)),
		UsageText: cmdline.UsageText(`# what failed since yesterday?
bus-agent runs list --status failed --since 24h
# what is going on now?
bus-agent runs list --status running
# for a script
bus-agent runs list --format json --limit 10`,
			"the list was printed; it may be empty", "the folder of the records cannot be read"),
		Action: prog.Action(cmdline.JSON, func(ctx context.Context, _ cmdline.Call) error {
			filter, err := o.filter(time.Now())
			if err != nil {
				return err
			}
			filter.Limit = limit
			return listRuns(prog, ctx, o.root, filter)
		}),
	}
}

// listedRun is a run in JSON.
type listedRun struct {
	runs.Run
	// DurationMS is missing where nobody knows how long a run took.
	DurationMS int64 `json:"duration_ms,omitempty"`
}

func listed(list []runs.Run) []listedRun {
	out := make([]listedRun, len(list))
	for i := range list {
		out[i] = listedRun{list[i], list[i].Duration().Milliseconds()}
	}
	return out
}

func listRuns(prog *cmdline.Program, ctx context.Context, root string, filter runs.Filter) error {
	store, err := runsStore(prog, root)
	if err != nil {
		return err
	}
	list, err := choose(prog, ctx, store, filter)
	switch {
	case err != nil:
		return err
	case prog.Global.JSON():
		return prog.Out.PrintJSON(listed(list))
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i := range list {
		r := &list[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", handleOf(r), cmdline.OneWord(string(r.Status)), cmdline.OneWord(r.Agent),
			r.StartTime.Local().Format(time.DateTime), took(r.Duration()), cmdline.OneWord(r.ProjectID+"/"+r.TaskID))
	}
	w.Flush()
	return prog.Out.Print(b.String())
}
