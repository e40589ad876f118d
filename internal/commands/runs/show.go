package runs

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/runs"
)

func runsShowCommand(prog *cmdline.Program) *urfave.Command {
	var root string
	return &urfave.Command{
		Name:      "show",
		Usage:     "say what is known of a run",
		ArgsUsage: "RUN",
		Description: `Prints what the record of a run says, the runs it belongs with (what was tried
before and after it for the same purpose, what started it and what it started) and
its files.`,
		Flags: []urfave.Flag{run.RecordsFlag(&root)},
		UsageText: cmdline.UsageText(`# why did it fail?
bus-agent runs show latest
# where are its files?
bus-agent runs show latest --format json`,
			"it was printed", "the record cannot be read"),
		BashComplete: cmdline.Completes(runWords(prog, &root, false)),
		Action: prog.Action(cmdline.JSON, func(ctx context.Context, call cmdline.Call) error {
			store, run, err := findRun(prog, ctx, root, call.Args[0])
			if err != nil {
				return err
			}
			details, err := detailsOf(prog, ctx, store, run)
			switch {
			case err != nil:
				return err
			case prog.Global.JSON():
				return prog.Out.PrintJSON(details)
			}
			return prog.Out.Print(details.text())
		}),
	}
}

// runDetails is all that is known of a run.
type runDetails struct {
	listedRun
	// Before are the earlier runs with the same purpose, the last one first, After
	// those that had this one before them.
	Before  []relatedRun `json:"before"`
	After   []relatedRun `json:"after"`
	Started []relatedRun `json:"started"` // by this run
	Files   []runFile    `json:"files"`
}

// relatedRun is a run that another one names.
type relatedRun struct {
	RunID  string      `json:"run_id"`
	Agent  string      `json:"agent,omitempty"`
	Status runs.Status `json:"status,omitempty"` // empty: there is no record of it
}

type runFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

func detailsOf(prog *cmdline.Program, ctx context.Context, store *runs.Records, run *runs.Run) (*runDetails, error) {
	d := &runDetails{
		listedRun: listed([]runs.Run{*run})[0],
		Before:    []relatedRun{}, After: []relatedRun{}, Started: []relatedRun{}, Files: filesOf(run.Dir),
	}
	// What this run started and what came after it began after it.
	since, err := choose(prog, ctx, store, runs.Filter{Since: run.StartTime})
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Backward(since) {
		switch run.RunID {
		case r.PreviousRunID:
			d.After = append(d.After, related(&r))
		case r.ParentRunID:
			d.Started = append(d.Started, related(&r))
		}
	}
	seen := map[string]bool{run.RunID: true}
	for id := run.PreviousRunID; id != "" && !seen[id]; {
		seen[id] = true
		before, err := store.Find(ctx, filepath.Join(run.ProjectID, run.TaskID, id))
		if err != nil || before.RunID != id {
			before, err = store.Find(ctx, id)
		}
		if err != nil || before.RunID != id {
			d.Before = append(d.Before, relatedRun{RunID: id})
			break
		}
		d.Before = append(d.Before, related(&before))
		id = before.PreviousRunID
	}
	return d, nil
}

func related(r *runs.Run) relatedRun {
	return relatedRun{RunID: r.RunID, Agent: r.Agent, Status: r.Status}
}

func (r relatedRun) String() string {
	if r.Status == "" {
		return r.RunID + " (there is no record of it)"
	}
	return r.RunID + " " + r.Agent + ", " + string(r.Status)
}

// maxShownFiles is how many entries of the folder of a run are read.
const maxShownFiles = 1000

// filesOf lists the files of a run.
func filesOf(dir string) []runFile {
	files := []runFile{}
	folder, err := statefile.OpenDir(dir)
	if err != nil {
		return files // the record in it could be read
	}
	defer folder.Close()
	entries, _, _ := folder.Entries(maxShownFiles)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, entry := range entries {
		if stat, err := entry.Info(); err == nil && stat.Mode().IsRegular() {
			files = append(files, runFile{entry.Name(), stat.Size()})
		}
	}
	return files
}

// text is the details for people, a line for each thing that is known.
func (d *runDetails) text() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s:\t%s\n", name, cmdline.Printable(value))
		}
	}
	row("id", d.RunID)
	row("status", string(d.Status))
	row("project", d.ProjectID)
	row("task", d.TaskID)
	row("runtime", d.Agent)
	row("version", d.AgentVersion)
	row("model", d.Model)
	if d.Session {
		row("session", "yes")
	}
	row("runtime's session", d.SessionID)
	row("access", d.Access)
	row("directory", d.CWD)
	row("command", d.CommandLine)
	row("started", d.StartTime.Local().Format(time.DateTime))
	if !d.EndTime.IsZero() {
		row("ended", d.EndTime.Local().Format(time.DateTime))
	}
	row("duration", took(d.Duration()))
	if d.PID > 0 {
		row("process", fmt.Sprint(d.PID))
	}
	if !d.EndTime.IsZero() {
		row("exit code", fmt.Sprint(d.ExitCode))
	}
	row("signal", d.Signal)
	row("error kind", d.ErrorKind)
	row("error", cmp.Or(d.Error, d.ErrorSummary))
	if u := d.Usage; u != nil {
		row("tokens", tokensText(u))
		if u.CostUSD != nil {
			row("cost", fmt.Sprintf("$%.4f", *u.CostUSD))
		}
	}
	if d.ToolCalls > 0 {
		row("tool calls", fmt.Sprint(d.ToolCalls))
	}
	for _, warning := range d.Warnings {
		row("warning", warning)
	}
	row("record", d.RecordProblem)
	for _, r := range d.Before {
		row("before it", r.String())
	}
	for _, r := range d.After {
		row("after it", r.String())
	}
	row("started by", d.ParentRunID)
	for _, r := range d.Started {
		row("it started", r.String())
	}
	row("folder", d.Dir)
	for _, f := range d.Files {
		row("file", fmt.Sprintf("%s, %s", f.Name, cmdline.Count(int(f.Size), "byte", "bytes")))
	}
	w.Flush()
	return b.String()
}

func tokensText(u *runs.Usage) string {
	text := fmt.Sprintf("%d in (%d cached), %d out", u.Input, u.Cached, u.Output)
	if u.Reasoning > 0 {
		text += fmt.Sprintf(" (%d reasoning)", u.Reasoning)
	}
	if u.Cumulative {
		text += ", of the whole session"
	}
	return text
}
