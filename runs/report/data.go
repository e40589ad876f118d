package report

import (
	"cmp"

	"github.com/busdk/bus-agent/runs"
)

// metadataText bounds one text of a record on the page, in bytes; shownWarnings bounds
// its warnings.
const metadataText, shownWarnings = 4 << 10, 20

// pageData is the data of the page's script.
type pageData struct {
	Now  int64     `json:"now"`
	Runs []runData `json:"runs"`
}

// runData is a run for the script; times are milliseconds.
type runData struct {
	Key      string `json:"key"`
	ID       string `json:"id"`
	Parent   string `json:"parent,omitempty"`
	Previous string `json:"previous,omitempty"`
	Project  string `json:"project"`
	Task     string `json:"task"`
	Name     string `json:"name"`
	Runtime  string `json:"runtime"`
	Version  string `json:"version,omitempty"`
	Model    string `json:"model,omitempty"`
	Access   string `json:"access,omitempty"`
	Status   string `json:"status"`

	Start     int64  `json:"start,omitempty"`
	StartText string `json:"start_text,omitempty"`
	Duration  *int64 `json:"duration,omitempty"`
	Took      string `json:"took,omitempty"`

	Ended         bool     `json:"ended,omitempty"`
	ExitCode      int      `json:"exit_code"`
	Signal        string   `json:"signal,omitempty"`
	FailureKind   string   `json:"failure_kind,omitempty"`
	Failure       string   `json:"failure,omitempty"`
	Stderr        string   `json:"stderr,omitempty"` // its end
	Warnings      []string `json:"warnings,omitempty"`
	RecordProblem string   `json:"record_problem,omitempty"`

	Session     bool   `json:"session,omitempty"`
	SessionID   string `json:"session_id,omitempty"`
	Folder      string `json:"folder,omitempty"`
	CommandLine string `json:"command_line,omitempty"`
	ToolCalls   int    `json:"tool_calls,omitempty"`
	// Tools are the numbers of the conversation's tool calls, of failed and of answered
	// ones, and the total and longest time of the answered, by tool.
	Tools map[string][5]int64 `json:"tools,omitempty"`

	Usage *runs.Usage `json:"usage,omitempty"`
	// Show is the command that shows the conversation.
	Show string `json:"show,omitempty"`
	// Large reports that the conversation is too large for the page.
	Large bool `json:"large,omitempty"`
}

// dataOf describes a run for the script.
func (p *page) dataOf(i int) runData {
	run, r := &p.runs[i], p.Rows[i]
	d := runData{
		Key: r.Key, ID: line(run.RunID, 200), Parent: line(run.ParentRunID, 200), Previous: line(run.PreviousRunID, 200),
		Project: r.Project, Task: r.Task, Name: r.Name, Runtime: r.Runtime, Version: line(run.AgentVersion, 80), Model: r.Model,
		Access: line(run.Access, 40), Status: r.State, StartText: r.Start, Took: r.Duration,
		Ended: !run.EndTime.IsZero(), ExitCode: run.ExitCode, Signal: line(run.Signal, 40),
		FailureKind: r.kind, Stderr: p.texts[i].stderr, RecordProblem: line(run.RecordProblem, 2000),
		Session: run.Session, SessionID: line(run.SessionID, 200), Folder: line(run.CWD, 1000),
		CommandLine: line(run.CommandLine, 2000), ToolCalls: run.ToolCalls, Usage: run.Usage,
	}
	if !run.StartTime.IsZero() {
		d.Start = run.StartTime.UnixMilli()
	}
	if took, ok := durationOf(run, p.options.Now); ok {
		ms := took.Milliseconds()
		d.Duration = &ms
	}
	if r.kind != "" {
		d.Failure, _ = cut(plain(cmp.Or(run.Error, r.Reason)), metadataText)
	}
	for _, w := range run.Warnings[:min(len(run.Warnings), shownWarnings)] {
		d.Warnings = append(d.Warnings, line(w, 1000))
	}
	if more := len(run.Warnings) - shownWarnings; more > 0 {
		d.Warnings = append(d.Warnings, "… "+plural(more, "warning", "warnings")+" left out …")
	}
	d.Show = p.command(i)
	if i < len(p.conversations) {
		d.Large = p.conversations[i].large
		for name, u := range p.conversations[i].tools {
			if d.Tools == nil {
				d.Tools = map[string][5]int64{}
			}
			d.Tools[name] = [5]int64{int64(u.Calls), int64(u.Failed), int64(u.answered), u.total.Milliseconds(), u.longest.Milliseconds()}
		}
	}
	return d
}
