package runs

import (
	"context"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/runs"
)

func listCommand(prog *cmdline.Program) *urfave.Command {
	s := &selection{}
	return &urfave.Command{
		Name:  "list",
		Usage: "list runs, newest first",
		Description: `Prints a line for each run: ID, status, runtime, start, duration, project/task; on a
terminal, below a header. Unreadable records are left out; standard error names them.`,
		Flags: append(s.flags(prog), cmdline.Number("limit,n", "print only the newest `N` runs", 1, &s.Limit)),
		UsageText: cmdline.UsageText(`# what failed since yesterday?
bus-agent runs list --status failed --since 24h
# what is running now?
bus-agent runs list --status running
# for a script
bus-agent runs list --format json --limit 10`,
			"the list was printed; it may be empty", "the folder of the records cannot be read"),
		Action: prog.Action(cmdline.JSON, func(ctx context.Context, _ cmdline.Call) error {
			records, err := openRecords(prog, s.root)
			if err != nil {
				return err
			}
			list, err := choose(ctx, prog, records, s.Filter)
			if err != nil {
				return err
			}
			table := prog.Table("ID", "STATUS", "RUNTIME", "STARTED", "DURATION", "PROJECT/TASK")
			for i := range list {
				r := &list[i]
				table.Row(idOf(r), cmdline.OneWord(string(r.Status)), cmdline.OneWord(r.Agent),
					r.StartTime.Local().Format(time.DateTime), took(r.Duration()), cmdline.OneWord(r.ProjectID+"/"+r.TaskID))
			}
			return prog.Out.Report(listed(list), table.String())
		}),
	}
}

// listedRun is a run in JSON.
type listedRun struct {
	runs.Run
	DurationMS int64 `json:"duration_ms,omitempty"` // missing if unknown
}

func listed(list []runs.Run) []listedRun {
	out := make([]listedRun, len(list))
	for i := range list {
		out[i] = listedRun{list[i], list[i].Duration().Milliseconds()}
	}
	return out
}
