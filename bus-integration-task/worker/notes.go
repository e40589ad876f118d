package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/busdk/bus-integration-task/closeout"
)

// hourly publishes the note of an attempt that takes hours, if it is due, and returns
// after how long the next one is.
func (a *attempt) hourly(ctx context.Context) time.Duration {
	elapsed := time.Since(a.begun)
	if closeout.NotesDue(elapsed, a.hours) {
		a.hours = int(elapsed / time.Hour)
		a.note(ctx, fmt.Sprintf("after %v: %s", elapsed.Round(time.Minute), cmp.Or(a.claim.Task().Note, "working")))
	}
	return time.Until(a.begun.Add(time.Duration(a.hours+1) * time.Hour))
}

// note publishes an engineering note if the command bus can be used. The policy decides
// what follows if it cannot.
func (a *attempt) note(ctx context.Context, text string) {
	notes := closeout.Notes{Environ: a.hidden, Workspaces: []string{a.Settings.WorkspaceRoot}}
	if trees, _, err := a.folders(); err == nil {
		notes.Workspaces = append(notes.Workspaces, trees)
	}
	ids, err := notes.Add(ctx, closeout.Note{
		Module: a.state.Recipient, WorkRef: a.state.Ref, Session: cmp.Or(a.outcome.RunID, a.claim.Attempt()),
		Text: a.line(a.state.Title + ": " + text),
	})
	switch {
	case errors.Is(err, closeout.ErrNotesUnavailable):
		a.logger().Debug("no note was published", "task", a.state.Ref, "reason", err.Error())
	case err != nil:
		a.warn("cannot publish a note: " + err.Error())
	}
	a.notes = append(a.notes, ids...)
}

// closingNote publishes what the attempt came to, before it is judged.
func (a *attempt) closingNote(ctx context.Context, report *closeout.Closeout, w closeout.Work) {
	text := fmt.Sprintf("ended without a report; %d changed files", len(w.Files))
	switch {
	case report != nil:
		text = fmt.Sprintf("%s; %d changed files", cmp.Or(report.Summary, string(report.Status), "ended"), len(w.Files))
	case w.Turn != closeout.TurnCompleted:
		text = fmt.Sprintf("the turn ended: %s", cmp.Or(w.TurnError, string(w.Turn)))
	}
	a.note(ctx, text)
}
