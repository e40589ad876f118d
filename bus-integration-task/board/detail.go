package board

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/busdk/bus-integration-task/task"
)

// Limits of a task that the page shows in full, in bytes and entries.
const (
	maxTalk        = 1000
	maxTalkText    = 16 << 10
	maxTalkSize    = 2 << 20
	maxDiff        = 512 << 10
	maxAttachments = 20
	maxEvidence    = 64 << 10
)

// detail is a task with its conversation and its latest result. It is read from the log
// when a page asks for it, so that the board need not keep it.
type detail struct {
	Task    *entry  `json:"task"`
	Lines   []talk  `json:"lines"`
	Skipped int     `json:"skipped,omitempty"` // older lines that are left out
	Result  *result `json:"result,omitempty"`

	size int
}

// result is what an end event brings.
type result struct {
	Files    []file `json:"files,omitempty"`
	Left     int    `json:"left,omitempty"` // attachments that are left out
	Closeout string `json:"closeout,omitempty"`
	Evidence string `json:"evidence,omitempty"`
}

type file struct {
	Path  string `json:"path"`
	Media string `json:"media,omitempty"`
	Size  int64  `json:"size"`
	Diff  bool   `json:"diff,omitempty"`
	Text  string `json:"text,omitempty"`
	Cut   bool   `json:"cut,omitempty"`
	Why   string `json:"why,omitempty"` // why there is no text
}

// task answers with one task in full.
func (s *server) task(w http.ResponseWriter, r *http.Request) {
	ref := r.URL.Query().Get("ref")
	if ref == "" || len(ref) > maxRef {
		refuse(w, http.StatusBadRequest, "ref: it must be the reference of a task")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	d := detail{Task: &entry{Ref: ref}}
	if err := s.o.Log.Task(ctx, ref, d.apply); err != nil {
		refuse(w, http.StatusBadGateway, "cannot read the task from the log: "+line(err.Error(), maxTitle))
		return
	}
	if d.Task.Status == "" {
		refuse(w, http.StatusNotFound, "the log has no task with this reference")
		return
	}
	d.Task.Lines = nil // they are in d.Lines
	answer(w, http.StatusOK, d)
}

func (d *detail) apply(e task.Event) {
	count := d.Task.Count
	if d.Task.apply(e); d.Task.Count == count {
		return
	}
	l := lineOf(e, d.Task.Lines[len(d.Task.Lines)-1].Stale, maxTalkText)
	d.Lines = append(d.Lines, l)
	d.size += len(l.Text) + len(l.Body)
	for len(d.Lines) > maxTalk || d.size > maxTalkSize {
		d.size -= len(d.Lines[0].Text) + len(d.Lines[0].Body)
		d.Lines = slices.Delete(d.Lines, 0, 1)
		d.Skipped++
	}
	switch {
	case l.Stale != "":
	case d.Task.Status.ended() && (len(e.Attachments) > 0 || e.Closeout != nil || e.Evidence != nil):
		d.Result = resultOf(e.Payload)
	case e.Name == task.Claimed:
		d.Result = nil
	}
}

func resultOf(p task.Payload) *result {
	r := &result{Closeout: indented(p.Closeout), Evidence: indented(p.Evidence)}
	diffs := diffsOf(p.Attachments)
	others := slices.DeleteFunc(slices.Clone(p.Attachments), isDiff)
	all := append(diffs, others...)
	n := min(len(all), maxAttachments)
	r.Left = len(all) - n
	budget := maxTalkSize
	for _, a := range all[:n] {
		f := fileOf(a, max(0, min(maxDiff, budget)))
		budget -= len(f.Text)
		r.Files = append(r.Files, f)
	}
	return r
}

// fileOf returns an attachment, the text only of a diff.
func fileOf(a task.Attachment, limit int) file {
	f := file{Path: line(a.Path, maxName), Media: line(a.MediaType, maxName), Size: a.Size, Diff: isDiff(a)}
	if !f.Diff {
		return f
	}
	text := a.Content
	switch strings.ToLower(a.ContentEncoding) {
	case "", "identity", "utf-8", "utf8":
	case "base64":
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			f.Why = "its content is not valid base64"
			return f
		}
		text = string(decoded)
	default:
		f.Why = fmt.Sprintf("its encoding is %s", line(a.ContentEncoding, maxName))
		return f
	}
	f.Cut = len(text) > limit
	f.Text = plain(text, limit)
	return f
}

func indented(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var b bytes.Buffer
	if len(raw) > maxEvidence || json.Indent(&b, raw, "", "  ") != nil {
		return plain(string(raw), maxEvidence)
	}
	return plain(b.String(), 2*maxEvidence)
}
