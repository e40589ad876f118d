package closeout

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/busdk/bus-agent/runner"

	"github.com/busdk/bus-integration-task/task"
)

// Bounds of the JSON of an [Evidence] and a [Closeout].
const (
	MaxJSON = 256 << 10 // bytes
	MaxText = 4 << 10   // bytes of a text; less if MaxJSON requires it
	MaxList = 100       // entries of each list
)

// An Evidence is the record of one attempt at a task. It is a value; nothing in it is a
// secret once JSON has returned it.
type Evidence struct {
	WorkRef   string `json:"work_ref"`
	AttemptID string `json:"attempt_id"`
	WorkerID  string `json:"worker_id"`
	RunID     string `json:"run_id,omitempty"` // run record of the attempt
	// RunIDs are all of its run records in order, if it has several: of an agent that
	// crashed, of runtimes that others replaced.
	RunIDs []string `json:"run_ids,omitempty"`

	AgentID string `json:"agent_id,omitempty"`
	task.Labels
	RemoteID   string `json:"remote_id,omitempty"`
	RemoteKind string `json:"remote_kind,omitempty"`

	Branch     string `json:"branch,omitempty"`
	WorktreeID string `json:"worktree_id,omitempty"`
	// Commit is what was promoted. Otherwise BranchCommit is what is on Branch alone, or
	// NoChangeReason says why nothing was committed.
	Commit       string `json:"commit,omitempty"`
	BranchCommit string `json:"branch_commit,omitempty"`
	// RebasedFrom is the commit that was tested in the worktree, if Commit is that one
	// rebased: its files were never tested together.
	RebasedFrom    string `json:"rebased_from,omitempty"`
	NoChangeReason string `json:"no_change_reason,omitempty"`

	ChangedFiles      []string `json:"changed_files,omitempty"`
	ChangedFilesTotal int      `json:"changed_files_total"`
	DiffBytes         int64    `json:"diff_bytes"`

	// Validation are the checks of the attempt as they were seen, not as reported.
	Validation []Check  `json:"validation,omitempty"`
	NoteIDs    []string `json:"bus_note_ids,omitempty"`

	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`

	Outcome Outcome `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
}

// SetWork sets what follows from the measured work and its verdict.
func (e *Evidence) SetWork(c *Closeout, w Work, v Verdict) {
	e.ChangedFiles, e.ChangedFilesTotal, e.DiffBytes = w.Files, len(w.Files), w.DiffBytes
	e.Validation, e.NoteIDs = validation(c, w), w.NoteIDs
	e.Outcome, e.Reason = v.Outcome, v.Reason
	if len(w.Files) == 0 {
		e.NoChangeReason = "produced no worktree changes"
		if c != nil && c.NoMatchingPlanReason != "" {
			e.NoChangeReason = c.NoMatchingPlanReason
		}
	}
}

// validation returns the test commands that were seen, each with its last known result,
// and the checks that the agent skipped.
func validation(c *Closeout, w Work) []Check {
	var checks []Check
	at := map[string]int{}
	add := func(command string, result CheckResult) {
		i, ok := at[command]
		if !ok {
			i = len(checks)
			at[command] = i
			checks = append(checks, Check{Command: command})
		}
		checks[i].Result = result
	}
	f := newFacts(c, w)
	for _, r := range f.ran {
		switch {
		case !r.isTest() && !f.claims(r.step):
		case r.failed:
			add(r.text(), CheckFailed)
		case r.passed:
			add(r.text(), CheckPassed)
		}
	}
	for _, check := range f.RequiredChecks {
		if _, seen := at[check.Command]; check.Result == CheckSkipped && !seen {
			add(check.Command, CheckSkipped)
			checks[at[check.Command]].Reason = check.Reason
		}
	}
	return checks
}

// claims reports whether a step is part of a required check.
func (f *facts) claims(s step) bool {
	return slices.ContainsFunc(f.claimed, s.runs)
}

// JSON returns the evidence for an event, within the bounds: lists are cut, and texts,
// which then end in "…". The secrets of environ are masked as by runner.Mask. It fails
// only for a time that JSON cannot express.
func (e Evidence) JSON(environ []string) (json.RawMessage, error) {
	e.ChangedFiles = first(e.ChangedFiles)
	e.Validation = first(e.Validation)
	e.NoteIDs = first(e.NoteIDs)
	e.RunIDs = first(e.RunIDs)
	e.Reason = line(e.Reason)
	return encoded(&e, environ)
}

// JSON returns the closeout for an event, as [Evidence.JSON] does.
func (c Closeout) JSON(environ []string) (json.RawMessage, error) {
	c.ChangedFiles = first(c.ChangedFiles)
	c.RequiredChecks = first(c.RequiredChecks)
	c.RemainingBlockers = first(c.RemainingBlockers)
	c.BusNotes.IDs = first(c.BusNotes.IDs)
	return encoded(&c, environ)
}

// first returns a copy of the beginning of list, nil for nil.
func first[T any, L ~[]T](list L) L {
	if list == nil {
		return nil
	}
	return append(L{}, list[:min(len(list), MaxList)]...)
}

// encoded returns the JSON of a pointer, whose texts it masks and cuts.
func encoded(v any, environ []string) (text json.RawMessage, err error) {
	masker := runner.NewMasker(environ)
	each(v, masker.Text) // before texts are cut: part of a secret would not be found
	for size := MaxText; ; size /= 2 {
		each(v, func(text string) string { return shortened(text, size) })
		if text, err = json.Marshal(v); err != nil || len(text) <= MaxJSON {
			return text, err
		}
	}
}
