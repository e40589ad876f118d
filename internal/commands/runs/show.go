package runs

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/run"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/runs"
)

func showCommand(prog *cmdline.Program) *urfave.Command {
	var root string
	return &urfave.Command{
		Name:      "show",
		Usage:     "show the record of a run",
		ArgsUsage: "RUN",
		Description: `Prints the record of a run, its files and the related runs: earlier and later attempts,
the run that started it, and the runs that it started.`,
		Flags: []urfave.Flag{run.RootFlag(&root)},
		UsageText: cmdline.UsageText(`# why did it fail?
bus-agent runs show latest
# where are its files?
bus-agent runs show latest --format json`,
			"the record was shown", "the record cannot be read"),
		BashComplete: completes(prog, &root, false),
		Action: action(prog, cmdline.JSON, &root, func(ctx context.Context, t target) error {
			details, err := detailsOf(ctx, prog, t)
			if err != nil {
				return err
			}
			return prog.Out.Report(details, details.text())
		}),
	}
}

// runDetails is everything known about a run.
type runDetails struct {
	listedRun
	// Before are earlier attempts, the last one first. After are later ones.
	Before  []relatedRun `json:"before"`
	After   []relatedRun `json:"after"`
	Started []relatedRun `json:"started"` // by this run
	Files   []runFile    `json:"files"`
}

// relatedRun is a run that another run names.
type relatedRun struct {
	RunID  string      `json:"run_id"`
	Agent  string      `json:"agent,omitempty"`
	Status runs.Status `json:"status,omitempty"` // empty if it has no record
}

type runFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

func detailsOf(ctx context.Context, prog *cmdline.Program, t target) (*runDetails, error) {
	run := t.Run
	d := &runDetails{
		listedRun: listed([]runs.Run{*run})[0],
		Before:    []relatedRun{}, After: []relatedRun{}, Started: []relatedRun{}, Files: filesOf(run.Dir),
	}
	// What this run started and what came after it began after it.
	since, err := choose(ctx, prog, t.records, runs.Filter{Since: run.StartTime})
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
		before, err := t.records.Find(ctx, filepath.Join(run.ProjectID, run.TaskID, id))
		if err != nil || before.RunID != id {
			before, err = t.records.Find(ctx, id)
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
		return r.RunID + " (no record)"
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
		if statefile.IsTemp(entry.Name()) { // it is of the run that is being recorded
			continue
		}
		if stat, err := entry.Info(); err == nil && stat.Mode().IsRegular() {
			files = append(files, runFile{entry.Name(), stat.Size()})
		}
	}
	return files
}

// text returns a line for each thing that is known.
func (d *runDetails) text() string {
	var t cmdline.Table
	t.Field("id", d.RunID)
	status := string(d.Status)
	if d.Status == runs.StatusUnknown {
		status += " (recorded as " + cmdline.Quote(string(cmp.Or(d.Recorded, d.Status))) + ")"
	}
	t.Field("status", status)
	t.Field("project", d.ProjectID)
	t.Field("task", d.TaskID)
	t.Field("runtime", d.Agent)
	t.Field("version", d.AgentVersion)
	t.Field("model", d.Model)
	if d.Session {
		t.Field("session", "yes")
	}
	t.Field("runtime's session", d.SessionID)
	t.Field("access", d.Access)
	t.Field("directory", d.CWD)
	t.Field("command", d.CommandLine)
	t.Time("started", d.StartTime)
	t.Time("ended", d.EndTime)
	t.Field("duration", took(d.Duration()))
	if d.PID > 0 {
		t.Field("process", fmt.Sprint(d.PID))
	}
	if !d.EndTime.IsZero() {
		t.Field("exit code", fmt.Sprint(d.ExitCode))
	}
	t.Field("signal", d.Signal)
	t.Field("error kind", d.ErrorKind)
	t.Field("error", cmp.Or(d.Error, d.ErrorSummary))
	if u := d.Usage; u != nil {
		t.Field("tokens", tokensText(u))
		if u.CostUSD != nil {
			t.Field("cost", fmt.Sprintf("$%.4f", *u.CostUSD))
		}
	}
	if d.ToolCalls > 0 {
		t.Field("tool calls", fmt.Sprint(d.ToolCalls))
	}
	for _, warning := range d.Warnings {
		t.Field("warning", warning)
	}
	t.Field("record", d.RecordProblem)
	for _, r := range d.Before {
		t.Field("before it", r.String())
	}
	for _, r := range d.After {
		t.Field("after it", r.String())
	}
	t.Field("started by", d.ParentRunID)
	for _, r := range d.Started {
		t.Field("it started", r.String())
	}
	t.Field("folder", d.Dir)
	for _, f := range d.Files {
		t.Field("file", fmt.Sprintf("%s, %s", f.Name, cmdline.Count(int(f.Size), "byte", "bytes")))
	}
	return t.String()
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
