package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/busdk/bus-integration-task/task"
)

// An Expectation is what a log must contain.
type Expectation struct {
	Created  []string          // tasks
	Accepted map[string]string // names of the events that a server has accepted, by ID
	Seen     map[string][]string
	// Seen are the IDs of events in the order in which others have read them, by the
	// name of the reader. Each has read from the beginning, perhaps not to the end.
}

// Check reports where a log breaks a rule, in one line each.
func Check(log []Entry, want Expectation) []string {
	var found []string
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	byID, byTask := map[string]Entry{}, map[string][]Entry{}
	var events []task.Event
	for i, e := range log {
		if i > 0 && e.ID <= log[i-1].ID {
			report("%s: out of order after %s", e.ID, log[i-1].ID)
		}
		byID[e.ID] = e
		byTask[e.WorkRef] = append(byTask[e.WorkRef], e)
		event, err := e.event()
		if err != nil {
			report("%s: %v", e.ID, err)
		}
		events = append(events, event)
	}
	for _, v := range task.Check(events) {
		report("%s", v)
	}
	for _, id := range slices.Sorted(maps.Keys(want.Accepted)) {
		if got := byID[id].Name; got != want.Accepted[id] {
			report("%s: accepted as %s, but the log has %q", id, want.Accepted[id], got)
		}
	}
	for reader, ids := range want.Seen {
		if len(ids) > len(log) {
			report("reader %s: %d events, but the log has %d", reader, len(ids), len(log))
			continue
		}
		for i, id := range ids {
			if id != log[i].ID {
				report("reader %s: event %d is %s, in the log it is %s", reader, i, id, log[i].ID)
				break
			}
		}
	}
	for _, ref := range want.Created {
		if len(byTask[ref]) == 0 {
			report("task %s: not in the log", ref)
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(byTask)) {
		for _, what := range checkTask(byTask[ref]) {
			report("task %s: %s", ref, what)
		}
	}
	return found
}

// checkTask reports what is wrong with the events of one task: its rounds begin and end
// once, and one attempt at a time holds it.
func checkTask(log []Entry) (found []string) {
	report := func(e Entry, what string) { found = append(found, e.ID+": "+what) }
	open, holder := false, Entry{}
	for i, e := range log {
		switch kind := strings.TrimPrefix(e.Name, "bus.task."); kind {
		case "created":
			if i > 0 {
				report(e, "created again")
			}
			open = true
		case "reopened":
			if open {
				report(e, "reopened before its end")
			}
			open = true
		case "claimed":
			if !open || holder.Attempt != e.Over {
				report(e, fmt.Sprintf("claimed by %s over %q while %q holds it", e.Attempt, e.Over, holder.Attempt))
			}
			if quiet := e.Time.Sub(holder.Time); e.Over != "" && quiet < holder.Lease {
				report(e, fmt.Sprintf("claimed %s after the latest event of %s, whose lease is %s", quiet, e.Over, holder.Lease))
			}
			holder = e
		case "approved", "assigned", "approval.answered":
		default:
			if e.Attempt != "" && (!open || e.Attempt != holder.Attempt) {
				report(e, fmt.Sprintf("%s of %s, while %q holds it", kind, e.Attempt, holder.Attempt))
			}
			if e.Attempt != "" {
				holder.Time = e.Time
			}
			switch kind {
			case "released":
				holder = Entry{}
			case "done", "blocked", "failed", "canceled", "closed":
				if !open {
					report(e, "ended again")
				}
				open, holder = false, Entry{}
			}
		}
	}
	if open {
		report(log[len(log)-1], "without an end")
	}
	return found
}
