package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runs"
)

func (inv *invocation) runsListCommand() *command {
	o := &runFilter{}
	var limit value
	return &command{
		name:    "list",
		purpose: "list runs, newest first",
		details: `Prints a line for each run: ID, status, runtime, start, duration, project/task.
Records that cannot be read are named on standard error and left out.`,
		json:  true,
		flags: append(o.flags(inv), option("limit,n", "print at most `N` runs, the newest", &limit)),
		examples: []example{
			{"what failed since yesterday?", "bus-agent runs list --status failed --since 24h"},
			{"what is going on now?", "bus-agent runs list --status running"},
			{"for a script", "bus-agent runs list --format json --limit 10"},
		},
		exits: exitCodes("the list was printed; it may be empty", "the folder of the records cannot be read"),
		run: func(ctx context.Context, _ call) error {
			filter, err := o.filter(time.Now())
			if err == nil {
				filter.Limit, err = atLeast(1, "limit", limit)
			}
			if err != nil {
				return err
			}
			return inv.listRuns(ctx, o.root, filter)
		},
	}
}

// atLeast returns the number of a flag, 0 where it is not given.
func atLeast(least int, flag string, v value) (int, error) {
	if !v.set {
		return 0, nil
	}
	n, err := strconv.Atoi(v.text)
	if err != nil || n < least {
		return 0, agent.Usagef("--%s %q is not a number from %d", flag, v.text, least)
	}
	return n, nil
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

func (inv *invocation) listRuns(ctx context.Context, root value, filter runs.Filter) error {
	store, err := inv.runsStore(root)
	if err != nil {
		return err
	}
	list, err := inv.choose(ctx, store, filter)
	switch {
	case err != nil:
		return err
	case inv.global.json():
		return inv.out.printJSON(listed(list))
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i := range list {
		r := &list[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", handleOf(r), oneWord(string(r.Status)), oneWord(r.Agent),
			r.StartTime.Local().Format(time.DateTime), took(r.Duration()), oneWord(r.ProjectID+"/"+r.TaskID))
	}
	w.Flush()
	return inv.out.print(b.String())
}
