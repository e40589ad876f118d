package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/urfave/cli/v2"

	"github.com/busdk/bus-integration-task/task"
)

var formatFlag = &cli.StringFlag{Name: "format", Value: "text", Usage: "text, or json for one JSON value a line"}

// A printer prints results in the format of --format.
type printer struct {
	to   io.Writer
	json bool
}

func newPrinter(c *cli.Context) (printer, error) {
	format := c.String("format")
	if format != "text" && format != "json" {
		return printer{}, agent.Usagef("--format %q: use text or json", format)
	}
	return printer{c.App.Writer, format == "json"}, nil
}

// encode prints a value as one line of JSON.
func (p printer) encode(v any) error { return json.NewEncoder(p.to).Encode(v) }

// columns prints a row with tabs between its columns.
func (p printer) columns(columns ...string) error {
	for i, column := range columns {
		columns[i] = oneLine(shortened(column))
	}
	_, err := fmt.Fprintln(p.to, strings.Join(columns, "\t"))
	return err
}

// maxColumn is how many bytes of a text are shown in a row. JSON has all of it.
const maxColumn = 4000

func shortened(text string) string {
	if len(text) <= maxColumn {
		return text
	}
	return strings.ToValidUTF8(text[:maxColumn], "") + "…"
}

// created prints a new task.
func (p printer) created(t task.Payload) error {
	if p.json {
		return p.encode(map[string]string{"work_ref": t.WorkRef, "recipient": t.Recipient})
	}
	_, err := fmt.Fprintf(p.to, "created (%s) -> @%s\n", t.WorkRef, t.Recipient)
	return err
}

// event prints an event. Its name is the first column.
func (p printer) event(e task.Event) error {
	if p.json {
		return p.encode(struct {
			ID     string    `json:"id"`
			Name   string    `json:"name"`
			Source string    `json:"source,omitempty"`
			Time   time.Time `json:"timestamp"`
			task.Payload
		}{e.ID, e.Name, e.Source, e.Time, e.Payload})
	}
	columns := []string{e.Name, e.WorkRef, e.Text}
	for _, c := range []struct{ name, value string }{
		{"status", e.Status}, {"source", e.Source}, {"worker", e.WorkerID}, {"approval", e.ApprovalID},
		{"decision", e.Decision}, {"commit", e.Commit}, {"run", e.RunID},
		{"profile", e.Labels.WorkerProfile}, {"requested_model", e.Labels.RequestedModel}, {"model", e.Labels.ObservedModel},
		{"effort", e.Labels.RequestedEffort}, {"auth", e.Labels.AuthMode}, {"credential", e.Labels.CredentialSourceKind},
	} {
		if c.value != "" {
			columns = append(columns, c.name+"="+c.value)
		}
	}
	return p.columns(columns...)
}

// body prints the further text of an event, each line after a tab.
func (p printer) body(e task.Event) error {
	if p.json || e.Body == "" {
		return nil
	}
	for line := range strings.Lines(shortened(e.Body)) {
		if _, err := fmt.Fprintln(p.to, "\t"+oneLine(strings.TrimRight(line, "\r\n"))); err != nil {
			return err
		}
	}
	return nil
}

// added prints an event that was appended, in JSON alone.
func (p printer) added(id, name, ref string) error {
	if !p.json {
		return nil
	}
	return p.encode(struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Ref  string `json:"work_ref"`
	}{id, name, ref})
}

// state prints a task.
func (p printer) state(s *task.State) error {
	if p.json {
		return p.encode(row{
			WorkRef: s.Ref, Recipient: s.Recipient, Status: s.Status, Text: s.Title, Note: s.Note, Round: s.Round,
			Worker: s.Attempt.WorkerID, Attempt: s.Attempt.ID, Approvals: len(s.Approvals), Branch: s.Branch.Name,
			ThreadID: s.Thread.ID, Labels: s.Labels, Used: s.Used, Result: s.End.Text, Commit: s.End.Commit, RunID: s.End.RunID,
		})
	}
	return p.columns(s.Ref, "@"+s.Recipient, string(s.Status), s.Title)
}

// row is a task in JSON.
type row struct {
	WorkRef   string      `json:"work_ref"`
	Recipient string      `json:"recipient"`
	Status    task.Status `json:"status"`
	Text      string      `json:"text"`
	Note      string      `json:"note,omitempty"` // latest text of the worker
	Round     int         `json:"round"`
	Worker    string      `json:"worker_id,omitempty"` // that has the task
	Attempt   string      `json:"attempt_id,omitempty"`
	Approvals int         `json:"open_approvals"`
	Branch    string      `json:"branch,omitempty"`
	ThreadID  string      `json:"app_server_thread_id,omitempty"`
	Labels    task.Labels `json:"labels,omitzero"`      // requested
	Used      task.Labels `json:"used_labels,omitzero"` // by the latest attempt
	Result    string      `json:"result,omitempty"`     // of the latest end, as are the next two
	Commit    string      `json:"commit,omitempty"`
	RunID     string      `json:"run_id,omitempty"`
}
