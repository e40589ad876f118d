package closeout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-integration-task/closeout"
)

// honest returns a closeout and the work that confirms it.
func honest() (*closeout.Closeout, *closeout.Work) {
	return &closeout.Closeout{
			TaskComplete:      true,
			Status:            closeout.StatusDone,
			ChangedFiles:      []string{"a.go", "./PLAN.md"},
			PlanClosed:        true,
			RequiredChecks:    []closeout.Check{{Command: "go test ./...", Result: closeout.CheckPassed}},
			RemainingBlockers: closeout.Texts{},
		}, &closeout.Work{
			Turn:      closeout.TurnCompleted,
			Root:      "/srv/work",
			Files:     []string{"PLAN.md", "a.go"},
			DiffBytes: 100,
			Commands:  []closeout.Command{ran("/bin/bash -lc 'go test ./...'")},
			Plan:      &closeout.Plan{Before: open("one", "two"), After: closeout.Items{Exists: true, Open: []string{"two"}, Checked: []string{"one"}}},
			Policy:    closeout.Policy{RequireStructuredCloseout: true},
		}
}

// readOnly returns a read-only closeout and an unchanged worktree.
func readOnly() (*closeout.Closeout, *closeout.Work) {
	return &closeout.Closeout{
			TaskComplete: true, ChangedFiles: []string{}, NoMatchingPlanItem: true, NoMatchingPlanReason: "read-only smoke",
		}, &closeout.Work{
			Turn:   closeout.TurnCompleted,
			Plan:   &closeout.Plan{Before: open("one"), After: open("one")},
			Policy: closeout.Policy{RequireStructuredCloseout: true},
		}
}

func open(items ...string) closeout.Items { return closeout.Items{Exists: true, Open: items} }

func ran(text string) closeout.Command  { return closeout.Command{Line: text, Passed: true} }
func fell(text string) closeout.Command { return closeout.Command{Line: text} }

type change = func(c *closeout.Closeout, w *closeout.Work)

func TestJudge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from   func() (*closeout.Closeout, *closeout.Work)
		change change
		absent bool // the agent reports no closeout
		want   closeout.Outcome
		reason string
	}{
		"honest":        {honest, nil, false, closeout.Done, "completed: 2 changed files, 1 required checks"},
		"absolute path": {honest, func(c *closeout.Closeout, _ *closeout.Work) { c.ChangedFiles[0] = "/srv/work/a.go" }, false, closeout.Done, ""},
		"no status":     {honest, func(c *closeout.Closeout, _ *closeout.Work) { c.Status = "" }, false, closeout.Done, ""},

		"turn failed": {honest, func(_ *closeout.Closeout, w *closeout.Work) {
			w.Turn, w.TurnError = closeout.TurnFailed, "model\noverloaded"
		}, false, closeout.Failed, "the turn failed: model overloaded"},
		"turn timed out":   {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Turn = closeout.TurnTimedOut }, false, closeout.Failed, "timed out"},
		"turn unknown":     {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Turn = "" }, false, closeout.Failed, "unknown way"},
		"turn interrupted": {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Turn = closeout.TurnInterrupted }, false, closeout.Blocked, "interrupted"},
		"status failed": {honest, func(c *closeout.Closeout, _ *closeout.Work) {
			c.Status, c.Summary = closeout.StatusFailed, "wrong repository"
		}, false, closeout.Failed, "the agent reports failure: wrong repository"},
		"status blocked": {honest, func(c *closeout.Closeout, _ *closeout.Work) {
			c.Status, c.Summary = closeout.StatusBlocked, "no access"
		}, false, closeout.Blocked, "the agent reports that it is blocked: no access"},
		"status unknown": {honest, func(c *closeout.Closeout, _ *closeout.Work) { c.Status = "almost" }, false, closeout.Blocked, `"almost"`},
		"incomplete":     {honest, func(c *closeout.Closeout, _ *closeout.Work) { c.TaskComplete = false }, false, closeout.Blocked, "does not claim task_complete"},
		"blockers": {honest, func(c *closeout.Closeout, _ *closeout.Work) { c.RemainingBlockers = closeout.Texts{"needs a review"} },
			false, closeout.Blocked, "blockers remain: needs a review"},

		"no closeout": {honest, nil, true, closeout.Blocked, "no closeout: the agent reported none"},
		"bad closeout": {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.CloseoutError = "no closeout: cut off" },
			true, closeout.Blocked, "no closeout: cut off"},
		"no closeout needed": {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Policy.RequireStructuredCloseout = false },
			true, closeout.Done, "completed: 2 changed files"},
		"no closeout, nothing changed": {readOnly, func(_ *closeout.Closeout, w *closeout.Work) { w.Policy.RequireStructuredCloseout = false },
			true, closeout.Blocked, "produced no worktree changes"},
		"no closeout, open item": {honest, func(_ *closeout.Closeout, w *closeout.Work) {
			w.Policy.RequireStructuredCloseout, w.Plan.After = false, w.Plan.Before
		}, true, closeout.Blocked, "unclosed PLAN item"},

		"claims without a diff": {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Files, w.DiffBytes = nil, 0 },
			false, closeout.Blocked, "produced no worktree changes"},
		"committed by itself, no diff": {readOnly, func(_ *closeout.Closeout, w *closeout.Work) { w.HeadMoved = true },
			false, closeout.Blocked, "produced no worktree changes"},
		"claims another file": {honest, func(c *closeout.Closeout, _ *closeout.Work) { c.ChangedFiles = append(c.ChangedFiles, "b.go") },
			false, closeout.Blocked, "claims files that did not change: b.go"},
		"omits a file": {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Files = append(w.Files, ".github/evil.yml") },
			false, closeout.Blocked, "omits changed files: .github/evil.yml"},
		"claims no files": {honest, func(c *closeout.Closeout, _ *closeout.Work) { c.ChangedFiles = nil },
			false, closeout.Blocked, "omits changed files: PLAN.md, a.go"},

		"read-only": {readOnly, nil, false, closeout.Done, "completed without changes: read-only smoke"},
		"read-only, but changed": {readOnly, func(_ *closeout.Closeout, w *closeout.Work) { w.Files = []string{"a.go"} },
			false, closeout.Blocked, "omits changed files: a.go"},
		"read-only without a list": {readOnly, func(c *closeout.Closeout, _ *closeout.Work) { c.ChangedFiles = nil },
			false, closeout.Blocked, "produced no worktree changes"},
		"read-only without a reason": {readOnly, func(c *closeout.Closeout, _ *closeout.Work) { c.NoMatchingPlanReason = " " },
			false, closeout.Blocked, "without a reason"},
		"read-only, incomplete": {readOnly, func(c *closeout.Closeout, _ *closeout.Work) { c.TaskComplete = false },
			false, closeout.Blocked, "produced no worktree changes"},
		"read-only with blockers": {readOnly, func(c *closeout.Closeout, _ *closeout.Work) { c.RemainingBlockers = closeout.Texts{"x"} },
			false, closeout.Blocked, "blockers remain"},
		"read-only, checks not run": {readOnly, func(c *closeout.Closeout, _ *closeout.Work) {
			c.RequiredChecks = []closeout.Check{{Command: "make check"}}
		},
			false, closeout.Blocked, "not seen to pass: make check"},

		"no tests": {honest, func(c *closeout.Closeout, w *closeout.Work) { c.RequiredChecks, w.Commands = nil, nil }, false, closeout.Blocked, "no tests run"},
		"claims tests that did not run": {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Commands = nil },
			false, closeout.Blocked, "not seen to pass: go test ./..."},
		"claims tests that failed": {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Commands = []closeout.Command{fell("go test ./...")} },
			false, closeout.Blocked, "the last test run failed: go test ./...; a required check was not seen to pass"},
		"hides a later failure": {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Commands = append(w.Commands, fell("go vet ./...")) },
			false, closeout.Blocked, "the last test run failed: go vet ./..."},
		"fixed after a failure": {honest, func(_ *closeout.Closeout, w *closeout.Work) {
			w.Commands = []closeout.Command{fell("go test ./..."), ran("go test ./... 2>&1")}
		}, false, closeout.Done, ""},
		"a check failed": {honest, func(c *closeout.Closeout, _ *closeout.Work) { c.RequiredChecks[0].Result = closeout.CheckFailed },
			false, closeout.Blocked, "a required check failed: go test ./..."},
		"a check skipped": {honest, func(c *closeout.Closeout, _ *closeout.Work) {
			c.RequiredChecks = append(c.RequiredChecks, closeout.Check{Command: "make e2e", Result: closeout.CheckSkipped, Reason: "no network"})
		}, false, closeout.Done, ""},
		"a check skipped without a reason": {honest, func(c *closeout.Closeout, _ *closeout.Work) {
			c.RequiredChecks = append(c.RequiredChecks, closeout.Check{Command: "make e2e", Result: closeout.CheckSkipped})
		}, false, closeout.Blocked, "skipped without a reason: make e2e"},
		"every check skipped": {honest, func(c *closeout.Closeout, _ *closeout.Work) {
			c.RequiredChecks = []closeout.Check{{Command: "make e2e", Result: closeout.CheckSkipped, Reason: "no network"}}
		}, false, closeout.Blocked, "every required check was skipped"},
		"read-only, check skipped": {readOnly, func(c *closeout.Closeout, _ *closeout.Work) {
			c.RequiredChecks = []closeout.Check{{Command: "make e2e", Result: closeout.CheckSkipped, Reason: "nothing changed"}}
		}, false, closeout.Done, ""},
		"read-only, not measured": {readOnly, func(_ *closeout.Closeout, w *closeout.Work) { w.Unmeasured = "not a repository" },
			false, closeout.Blocked, "not a repository"},
		"code changed after the tests": {honest, func(_ *closeout.Closeout, w *closeout.Work) {
			w.Commands[0].Ended = time.Unix(100, 0)
			w.Written = map[string]time.Time{"a.go": time.Unix(101, 0), "PLAN.md": time.Unix(102, 0)}
		}, false, closeout.Blocked, "no tests run after the last change: a.go"},
		"only documents changed after the tests": {honest, func(_ *closeout.Closeout, w *closeout.Work) {
			w.Commands[0].Ended = time.Unix(100, 0)
			w.Written = map[string]time.Time{"a.go": time.Unix(100, 0), "PLAN.md": time.Unix(102, 0)}
		}, false, closeout.Done, ""},
		"a check that is prose": {honest, func(c *closeout.Closeout, _ *closeout.Work) { c.RequiredChecks[0].Command = "all tests pass" },
			false, closeout.Blocked, "not seen to pass: all tests pass"},

		"claims a closed item": {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Plan.After = w.Plan.Before },
			false, closeout.Blocked, "unclosed PLAN item: the closeout claims plan_closed"},
		"claims a closed item of no plan": {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Plan = nil },
			false, closeout.Blocked, "unclosed PLAN item: the closeout claims plan_closed"},
		"leaves the item open": {honest, func(c *closeout.Closeout, w *closeout.Work) { c.PlanClosed, w.Plan.After = false, w.Plan.Before },
			false, closeout.Blocked, "unclosed PLAN item"},
		"no plan": {honest, func(c *closeout.Closeout, w *closeout.Work) { c.PlanClosed, w.Plan = false, nil }, false, closeout.Done, ""},
		"no matching item": {honest, func(c *closeout.Closeout, w *closeout.Work) {
			c.PlanClosed, c.NoMatchingPlanItem, c.NoMatchingPlanReason, w.Plan.After = false, true, "unplanned", w.Plan.Before
		}, false, closeout.Done, ""},
		"no matching item, but one closed": {honest, func(c *closeout.Closeout, _ *closeout.Work) {
			c.PlanClosed, c.NoMatchingPlanItem, c.NoMatchingPlanReason = false, true, "unplanned"
		}, false, closeout.Blocked, "but an item was closed"},
		"both claims about the plan": {honest, func(c *closeout.Closeout, _ *closeout.Work) { c.NoMatchingPlanItem = true },
			false, closeout.Blocked, "claims both plan_closed and no_matching_plan_item"},
		"follow-ups added": {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Plan.After.Open = append(w.Plan.After.Open, "three") }, false, closeout.Done, ""},
		"item removed":     {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Plan.After.Checked = nil }, false, closeout.Done, ""},
		"item reworded": {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Plan.After = open("one thing", "two") },
			false, closeout.Blocked, "unclosed PLAN item"},
		"item checked before already": {honest, func(_ *closeout.Closeout, w *closeout.Work) {
			w.Plan.Before.Checked, w.Plan.After = []string{"one"}, closeout.Items{Exists: true, Open: []string{"one more", "two"}, Checked: []string{"one"}}
		}, false, closeout.Blocked, "unclosed PLAN item"},
		"plan removed": {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Plan.After = closeout.Items{} },
			false, closeout.Blocked, "unclosed PLAN item"},

		"notes missing": {honest, func(_ *closeout.Closeout, w *closeout.Work) { w.Policy.RequireBusNotes = true },
			false, closeout.Blocked, "no Bus Notes were published"},
		"notes claimed only": {honest, func(c *closeout.Closeout, w *closeout.Work) {
			c.BusNotes.IDs, w.Policy.RequireBusNotes = []string{"note-1"}, true
		}, false, closeout.Blocked, "no Bus Notes were published"},
		"notes published": {honest, func(_ *closeout.Closeout, w *closeout.Work) {
			w.NoteIDs, w.Policy.RequireBusNotes = []string{"note-1"}, true
		}, false, closeout.Done, ""},
		"terminal escapes": {honest, func(c *closeout.Closeout, _ *closeout.Work) {
			c.RemainingBlockers = closeout.Texts{"a\x1b[2J\nb\u202e"}
		},
			false, closeout.Blocked, "blockers remain: a�[2J b�"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, work := c.from()
			if c.change != nil {
				c.change(report, work)
			}
			if c.absent {
				report = nil
			}
			got := closeout.Judge(report, *work)
			if got.Outcome != c.want || !strings.Contains(got.Reason, c.reason) || got.Reason == "" {
				t.Errorf("got %s: %s\nwant %s: %s", got.Outcome, got.Reason, c.want, c.reason)
			}
		})
	}
}

// All reasons are named, and a reason is one bounded line whatever the agent reports.
func TestJudgeNamesEveryReason(t *testing.T) {
	t.Parallel()
	report, work := honest()
	report.TaskComplete = false
	report.Summary = strings.Repeat("x", 1<<20)
	report.RemainingBlockers = closeout.Texts{"first", strings.Repeat("y\n", 1<<20)}
	work.Files, work.Commands = nil, nil
	got := closeout.Judge(report, *work).Reason
	if len(got) > 2<<10 || strings.Contains(got, "\n") {
		t.Errorf("the reason has %d bytes", len(got))
	}

	// A secret that the bound would cut is masked before.
	work.Environ = []string{"API_KEY=topsecret"}
	for size := range 20 {
		report.RemainingBlockers = closeout.Texts{strings.Repeat("y", 2020+size) + "topsecret"}
		if got := closeout.Judge(report, *work).Reason; strings.Contains(got, "tops") {
			t.Fatalf("part of a secret: %s", got)
		}
	}

	report.RemainingBlockers = nil
	want := "the closeout does not claim task_complete; produced no worktree changes; changed_files claims files that did not change: PLAN.md, a.go; no tests run; a required check was not seen to pass: go test ./..."
	if got := closeout.Judge(report, *work).Reason; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func ExampleJudge() {
	report, err := closeout.Parse(`I fixed it.
{"task_complete": true, "status": "done", "changed_files": ["a.go"], "required_checks": ["go test ./..."]}`)
	if err != nil {
		panic(err)
	}
	verdict := closeout.Judge(&report, closeout.Work{
		Turn:     closeout.TurnCompleted,
		Files:    []string{"a.go"},
		Commands: []closeout.Command{{Line: "go test ./... || true", Passed: true}},
	})
	fmt.Println(verdict.Outcome)
	fmt.Println(verdict.Reason)
	// Output:
	// blocked
	// no tests run with a visible exit code: go test ./...; a required check was not seen to pass: go test ./...
}

// Of a one-shot command the exit code decides, and then the policy about notes.
func TestJudgeCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		work closeout.Work
		want closeout.Verdict
	}{
		{closeout.Work{Turn: closeout.TurnCompleted}, closeout.Verdict{Outcome: closeout.Done, Reason: "completed"}},
		{closeout.Work{Turn: closeout.TurnCompleted, NoteIDs: []string{"n"}, Policy: closeout.Policy{RequireBusNotes: true, RequireStructuredCloseout: true}}, closeout.Verdict{Outcome: closeout.Done, Reason: "completed"}},
		{closeout.Work{Turn: closeout.TurnCompleted, Policy: closeout.Policy{RequireBusNotes: true}}, closeout.Verdict{Outcome: closeout.Blocked, Reason: "no Bus Notes were published, which the policy requires"}},
		{closeout.Work{Turn: closeout.TurnFailed, TurnError: "exit code 2: sk-0123456789", Environ: []string{"X_KEY=sk-0123456789"}}, closeout.Verdict{Outcome: closeout.Failed, Reason: "exit code 2: ***"}},
		{closeout.Work{Turn: closeout.TurnTimedOut}, closeout.Verdict{Outcome: closeout.Failed, Reason: "the turn timed out"}},
		{closeout.Work{Turn: closeout.TurnInterrupted}, closeout.Verdict{Outcome: closeout.Failed, Reason: "the turn was interrupted"}},
	} {
		if got := closeout.JudgeCommand(c.work); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.work, got, c.want)
		}
	}
}
