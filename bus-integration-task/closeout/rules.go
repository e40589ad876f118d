package closeout

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func turnFailed(f *facts) string {
	switch f.Turn {
	case TurnFailed:
		return "the turn failed: " + cmp.Or(f.TurnError, "no reason was reported")
	case TurnTimedOut:
		return "the turn timed out"
	case TurnCompleted, TurnInterrupted:
		return ""
	}
	return fmt.Sprintf("the turn ended in an unknown way: %q", f.Turn)
}

func statusFailed(f *facts) string {
	if f.Status == StatusFailed {
		return "the agent reports failure: " + cmp.Or(f.Summary, strings.Join(f.RemainingBlockers, ", "), "no reason was reported")
	}
	return ""
}

func turnInterrupted(f *facts) string {
	if f.Turn == TurnInterrupted {
		return "the turn was interrupted"
	}
	return ""
}

func closeoutMissing(f *facts) string {
	if f.reported || !f.Policy.RequireStructuredCloseout {
		return ""
	}
	return "no closeout: " + cmp.Or(strings.TrimPrefix(f.CloseoutError, ErrNone.Error()+": "), "the agent reported none")
}

func statusBlocked(f *facts) string {
	switch f.Status {
	case "", StatusDone, StatusFailed:
		return ""
	case StatusBlocked:
		return "the agent reports that it is blocked" + with(f.Summary)
	}
	return fmt.Sprintf("the closeout has the unknown status %q", f.Status)
}

func with(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func blockersRemain(f *facts) string {
	if len(f.RemainingBlockers) == 0 {
		return ""
	}
	return "blockers remain: " + some(f.RemainingBlockers)
}

func taskIncomplete(f *facts) string {
	if f.reported && !f.TaskComplete {
		return "the closeout does not claim task_complete"
	}
	return ""
}

func nothingChanged(f *facts) string {
	if len(f.Files) > 0 || f.readOnly {
		return ""
	}
	return cmp.Or(f.Unmeasured, "produced no worktree changes")
}

func filesDiffer(f *facts) string {
	if !f.reported {
		return ""
	}
	claimed, changed := map[string]bool{}, map[string]bool{}
	for _, name := range f.ChangedFiles {
		claimed[f.relative(name)] = true
	}
	for _, name := range f.Files {
		changed[path.Clean(name)] = true
	}
	var reasons []string
	for _, side := range []struct {
		text        string
		all, except map[string]bool
	}{
		{"changed_files claims files that did not change", claimed, changed},
		{"changed_files omits changed files", changed, claimed},
	} {
		rest := maps.Clone(side.all)
		maps.DeleteFunc(rest, func(name string, _ bool) bool { return side.except[name] })
		if len(rest) > 0 {
			reasons = append(reasons, side.text+": "+some(slices.Sorted(maps.Keys(rest))))
		}
	}
	return strings.Join(reasons, "; ")
}

// relative returns a claimed path relative to the repository.
func (f *facts) relative(name string) string {
	name = filepath.ToSlash(strings.TrimSpace(name))
	if f.Root != "" {
		name = strings.TrimPrefix(name, strings.TrimSuffix(filepath.ToSlash(f.Root), "/")+"/")
	}
	return path.Clean(name)
}

func testsMissing(f *facts) string {
	if f.readOnly {
		return ""
	}
	var seen, known *ranStep
	for i := range f.ran {
		if r := &f.ran[i]; r.isTest() {
			seen = r
			if r.passed || r.failed {
				known = r
			}
		}
	}
	switch {
	case seen == nil:
		return "no tests run"
	case known == nil:
		return "no tests run with a visible exit code: " + seen.text()
	case known.failed:
		return "the last test run failed: " + known.text()
	}
	if later := f.changedAfter(known.ended); len(later) > 0 {
		return "no tests run after the last change: " + some(later)
	}
	return ""
}

// changedAfter returns the files that were written after a time, without documentation,
// whose changes need no test.
func (f *facts) changedAfter(t time.Time) (later []string) {
	if t.IsZero() {
		return nil
	}
	for _, name := range f.Files {
		if written := f.Written[name]; written.After(t) && !slices.Contains(documents, strings.ToLower(path.Ext(name))) {
			later = append(later, name)
		}
	}
	return later
}

var documents = []string{".md", ".markdown", ".txt", ".rst", ".adoc"}

func checksUnconfirmed(f *facts) string {
	var reasons []string
	skipped := 0
	for _, check := range f.RequiredChecks {
		switch {
		case check.Result == CheckSkipped:
			if skipped++; check.Reason == "" {
				reasons = append(reasons, "a required check was skipped without a reason: "+check.Command)
			}
		case check.Result == CheckFailed:
			reasons = append(reasons, "a required check failed: "+check.Command)
		case !f.confirmed(check.Command):
			reasons = append(reasons, "a required check was not seen to pass: "+check.Command)
		}
	}
	if skipped > 0 && skipped == len(f.RequiredChecks) && !f.readOnly {
		reasons = append(reasons, "every required check was skipped")
	}
	return some(reasons)
}

// confirmed reports whether the last known run of each step of a claimed check passed.
// Steps such as cd count only where the claim has no others.
func (f *facts) confirmed(claim string) bool {
	steps := stepsOf(claim)
	if main := slices.DeleteFunc(slices.Clone(steps), step.onlyReads); len(main) > 0 {
		steps = main
	}
	for _, s := range steps {
		passed := false
		for _, r := range f.ran {
			if r.runs(s) && (r.passed || r.failed) {
				passed = r.passed
			}
		}
		if !passed {
			return false
		}
	}
	return len(steps) > 0
}

func planUnclosed(f *facts) string {
	var open, closed int
	if f.Plan != nil {
		open, closed = len(f.Plan.Before.Open), len(f.Plan.closed())
	}
	switch {
	case !f.reported && open > 0 && closed == 0:
		return "unclosed PLAN item: no item was closed"
	case !f.reported:
		return ""
	case f.PlanClosed && f.NoMatchingPlanItem:
		return "the closeout claims both plan_closed and no_matching_plan_item"
	case f.PlanClosed && closed == 0:
		return "unclosed PLAN item: the closeout claims plan_closed, but no item was closed"
	case f.PlanClosed || f.Plan == nil:
		return ""
	case f.NoMatchingPlanItem && closed > 0:
		return "the closeout claims no_matching_plan_item, but an item was closed"
	case f.NoMatchingPlanItem && strings.TrimSpace(f.NoMatchingPlanReason) == "":
		return "the closeout claims no_matching_plan_item without a reason"
	case !f.NoMatchingPlanItem && open > 0:
		return "unclosed PLAN item"
	}
	return ""
}

func notesMissing(f *facts) string {
	if f.Policy.RequireBusNotes && len(f.NoteIDs) == 0 {
		return "no Bus Notes were published, which the policy requires"
	}
	return ""
}

// some joins the first texts of a list.
func some(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
