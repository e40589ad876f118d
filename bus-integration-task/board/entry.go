package board

import (
	"cmp"
	"slices"
	"strings"

	"github.com/busdk/bus-integration-task/task"
)

// Limits of what is kept of one task, in bytes and entries.
const (
	maxName      = 200 // bytes of a reference, recipient, worker or label
	maxTitle     = 400
	maxLineText  = 700
	maxLines     = 12
	maxApprovals = task.MaxApprovals
	maxAsked     = 8 << 10
)

// entry is a task as the board keeps it, and as the page gets it.
type entry struct {
	Ref       string    `json:"ref"` // as in the log; all else is for display
	Text      string    `json:"text"`
	Recipient string    `json:"recipient,omitempty"`
	Sender    string    `json:"sender,omitempty"`
	Status    status    `json:"status"`
	First     string    `json:"first"`   // ID of the event that created it
	Created   int64     `json:"created"` // times are milliseconds since 1970
	Changed   int64     `json:"changed"`
	Round     int       `json:"round"`
	Worker    string    `json:"worker,omitempty"` // that holds the task, or held it last
	Attempt   string    `json:"attempt,omitempty"`
	Since     int64     `json:"since,omitempty"` // when the status began
	Claimed   int64     `json:"claimed,omitempty"`
	Renewed   int64     `json:"renewed,omitempty"`
	Lease     int       `json:"lease,omitempty"` // seconds
	Labels    []label   `json:"labels,omitempty"`
	Branch    string    `json:"branch,omitempty"`
	Commit    string    `json:"commit,omitempty"`
	Run       string    `json:"run,omitempty"`
	Thread    string    `json:"thread,omitempty"`
	Reason    string    `json:"reason,omitempty"` // text of the end
	Diffs     int       `json:"diffs,omitempty"`  // attachments of the end that are diffs
	Approvals []request `json:"approvals,omitempty"`
	Lines     []talk    `json:"lines,omitempty"` // the latest
	Count     int       `json:"count"`           // lines in all

	state  task.State
	shown  bool // whether pages have a row of it
	listed bool // whether its row counts as one of the open tasks
	queued bool // whether it waits for a row
}

type label struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// request is an approval request without an answer.
type request struct {
	ID   string `json:"id"` // as in the log
	At   int64  `json:"at"`
	Text string `json:"text"`
	Body string `json:"body,omitempty"`
}

// talk is an event of a task as a line of its conversation.
type talk struct {
	ID    string `json:"id"`
	At    int64  `json:"at"`
	Kind  string `json:"kind"` // name of the event without its prefix
	Who   string `json:"who,omitempty"`
	Text  string `json:"text,omitempty"`
	Body  string `json:"body,omitempty"`
	Stale string `json:"stale,omitempty"` // why it had no effect
}

// apply folds an event into the entry.
// Events up to the latest one that it has seen are ignored.
func (t *entry) apply(e task.Event) {
	change := t.state.Apply(e)
	if change.Kind == task.ChangeDuplicate || t.state.Status == task.StatusUnknown {
		return
	}
	t.state.Messages = nil // of no use here, and large
	why := ""
	if !change.Applied() {
		why = plain(change.Reason, maxTitle)
	}
	at := e.Time.UnixMilli()
	t.Changed = at
	t.Count++
	t.Lines = append(t.Lines, lineOf(e, why, maxLineText))
	if n := len(t.Lines) - maxLines; n > 0 {
		t.Lines = slices.Delete(t.Lines, 0, n)
	}
	if why == "" {
		t.take(e, at)
	}
	before := t.Status
	t.Status = statusOf(&t.state)
	if t.Status != before {
		t.Since = at
	}
	t.Round = t.state.Round
	if t.Status.ended() {
		t.Lines = t.Lines[len(t.Lines)-1:] // the page reads the others when it shows the task
	}
	t.Approvals = slices.DeleteFunc(t.Approvals, func(r request) bool { return !asks(&t.state, r.ID) })
}

// take keeps what an event that had an effect says.
func (t *entry) take(e task.Event, at int64) {
	set := func(field *string, value string, limit int) {
		if value != "" {
			*field = line(value, limit)
		}
	}
	switch e.Name {
	case task.Created:
		t.First, t.Created = strings.Clone(e.ID), at
		t.Text = title(e.Payload)
		set(&t.Sender, e.Sender, maxName)
	case task.Claimed:
		t.Worker, t.Attempt = line(e.WorkerID, maxName), line(e.AttemptID, maxName)
		t.Claimed, t.Renewed, t.Lease = at, at, int(t.state.Attempt.Lease.Seconds())
		t.Reason, t.Commit, t.Diffs = "", "", 0
	case task.Reopened, task.Assigned, task.Released:
		t.Reason, t.Diffs = "", 0
	case task.ApprovalRequested:
		if len(t.Approvals) < maxApprovals {
			t.Approvals = append(t.Approvals, request{ID: strings.Clone(e.ApprovalID), At: at, Text: plain(e.Text, maxAsked), Body: plain(e.Body, maxAsked)})
		}
	case task.Done, task.Closed, task.Blocked, task.Failed, task.Canceled:
		t.Reason = line(firstOf(e.Text, e.Body), maxTitle)
		t.Diffs = len(diffsOf(e.Attachments))
	}
	t.Recipient = line(t.state.Recipient, maxName)
	if e.AttemptID != "" && e.AttemptID == t.state.Attempt.ID {
		t.Renewed = at
	}
	set(&t.Branch, e.Branch, maxName)
	set(&t.Commit, e.Commit, maxName)
	set(&t.Run, e.RunID, maxName)
	set(&t.Thread, e.ThreadID, maxName)
	if e.Labels != (task.Labels{}) {
		t.Labels = labelsOf(cmp.Or(t.state.Used, t.state.Labels)) // requested, until a worker reports what it uses
	}
}

// labelsOf returns the labels that are set.
func labelsOf(l task.Labels) []label {
	var all []label
	for _, one := range []label{
		{"worker profile", l.WorkerProfile}, {"requested model", l.RequestedModel}, {"observed model", l.ObservedModel},
		{"effort", l.RequestedEffort}, {"auth mode", l.AuthMode}, {"credential source", l.CredentialSourceKind},
	} {
		if one.Value = line(one.Value, maxName); one.Value != "" {
			all = append(all, one)
		}
	}
	return all
}

// lineOf returns an event as a line of a conversation, each text within limit bytes.
func lineOf(e task.Event, why string, limit int) talk {
	kind := strings.TrimPrefix(e.Name, "bus.task.")
	text := e.Text
	switch e.Name {
	case task.ApprovalAnswered:
		text = strings.TrimSpace(e.Decision + " " + text)
	case task.Progress:
		if text == "" && e.Commit != "" {
			text = "about to promote " + e.Commit
		}
	}
	who := e.WorkerID
	if e.AttemptID == "" && e.WorkerID == "" {
		who = firstOf(e.Sender, e.Source)
	}
	return talk{ID: e.ID, At: e.Time.UnixMilli(), Kind: line(kind, maxName), Who: line(who, maxName), Text: plain(text, limit), Body: plain(e.Body, limit), Stale: why}
}

func title(p task.Payload) string {
	return line(firstOf(p.Text, p.Body, "(no text)"), maxTitle)
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			return text
		}
	}
	return ""
}

// diffsOf returns the attachments that are diffs.
func diffsOf(all []task.Attachment) []task.Attachment {
	return slices.DeleteFunc(slices.Clone(all), func(a task.Attachment) bool { return !isDiff(a) })
}

func isDiff(a task.Attachment) bool {
	media, _, _ := strings.Cut(a.MediaType, ";")
	return strings.EqualFold(strings.TrimSpace(media), "text/x-diff")
}
