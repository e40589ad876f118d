package closeout

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/busdk/bus-agent/runner"
)

// Turn is how the last turn of the agent ended.
type Turn string

// The ends of a turn.
const (
	TurnCompleted   Turn = "completed"
	TurnInterrupted Turn = "interrupted"
	TurnFailed      Turn = "failed"
	TurnTimedOut    Turn = "timed out"
)

// Work is what the worker has measured of an attempt. Judge does not change it.
type Work struct {
	Turn      Turn
	TurnError string // why the turn failed

	// Root is the absolute path of the worktree. It makes claimed paths relative.
	Root string
	// Files are all paths that differ from the base commit, slash-separated and relative
	// to the repository, untracked and deleted ones included.
	Files []string
	// Written is when Files were last written or renamed, for those that exist.
	Written   map[string]time.Time
	DiffBytes int64
	HeadMoved bool // the agent committed, or checked out something else
	// Unmeasured is why Files and DiffBytes are not known; "" if they are. Without them a
	// read-only closeout is not believed.
	Unmeasured string

	Commands []Command // in the order in which they ended; see CommandLog
	Plan     *Plan     // nil if the repository has no PLAN.md
	NoteIDs  []string  // Bus Notes that the worker has published

	CloseoutError string // why Parse found no closeout
	Policy        Policy

	// Environ is the environment whose secrets are masked in the reason; see runner.Mask.
	Environ []string
}

// Policy is what the operator requires of an attempt.
type Policy struct {
	RequireStructuredCloseout bool
	RequireBusNotes           bool
}

// Outcome is how a task ends.
type Outcome string

// The outcomes that Judge returns.
const (
	Done    Outcome = "done"
	Blocked Outcome = "blocked"
	Failed  Outcome = "failed"
)

// A Verdict is an outcome and its reason: one line without control characters.
type Verdict struct {
	Outcome Outcome
	Reason  string
}

// Judge decides how a task ends. A nil closeout means that the agent reported none.
//
// A turn that failed, and a closeout with the status failed, fail the task. Everything
// that contradicts the closeout or is missing blocks it; the reason names all of that.
// A read-only closeout (task_complete, an empty changed_files, no_matching_plan_item and
// its reason) needs no change and no test if the worktree is unchanged. Judge is for the
// turns of an agent; see [JudgeCommand].
func Judge(c *Closeout, w Work) Verdict {
	f := newFacts(c, w)
	outcome, reason := f.judge()
	return Verdict{outcome, shortened(line(runner.Mask(w.Environ, reason)), maxReason)}
}

// JudgeCommand decides how the task of a one-shot command ends. Its exit code decides; of
// the policy only RequireBusNotes counts.
func JudgeCommand(w Work) Verdict {
	f := newFacts(nil, w)
	v := Verdict{Done, "completed"}
	if w.Turn != TurnCompleted {
		v = Verdict{Failed, cmp.Or(w.TurnError, turnFailed(f), turnInterrupted(f))}
	} else if text := notesMissing(f); text != "" {
		v = Verdict{Blocked, text}
	}
	v.Reason = shortened(line(runner.Mask(w.Environ, v.Reason)), maxReason)
	return v
}

func (f *facts) judge() (Outcome, string) {
	for _, r := range rules {
		if text := r.fails(f); text != "" && r.outcome == Failed {
			return Failed, text
		}
	}
	var reasons []string
	for _, r := range rules {
		if text := r.fails(f); text != "" && r.outcome == Blocked {
			reasons = append(reasons, text)
		}
	}
	if len(reasons) > 0 {
		return Blocked, strings.Join(reasons, "; ")
	}
	return Done, f.success()
}

const maxReason = 2 << 10

// facts are the closeout, the work and what follows from both.
type facts struct {
	Closeout
	Work
	reported bool
	readOnly bool // a read-only closeout, and the worktree is unchanged
	ran      []ranStep
	claimed  []step // of the required checks
}

// A ranStep is a step of a command that was seen, and how it ended if that is known.
type ranStep struct {
	step
	passed bool
	failed bool // the step, or another one of its line
	ended  time.Time
}

const maxRan = 10_000 // steps that are compared with the required checks, the last ones

func newFacts(c *Closeout, w Work) *facts {
	f := &facts{Work: w, reported: c != nil}
	if c != nil {
		f.Closeout = *c
	}
	explicit := f.TaskComplete && f.ChangedFiles != nil && len(f.ChangedFiles) == 0 &&
		f.NoMatchingPlanItem && strings.TrimSpace(f.NoMatchingPlanReason) != ""
	f.readOnly = explicit && len(w.Files) == 0 && w.DiffBytes == 0 && !w.HeadMoved && w.Unmeasured == ""
	for _, command := range w.Commands {
		for _, s := range stepsOf(command.Line) {
			f.ran = append(f.ran, ranStep{s, command.Passed && s.proven, !command.Passed, command.Ended})
		}
	}
	f.ran = f.ran[max(0, len(f.ran)-maxRan):]
	for _, check := range f.RequiredChecks {
		f.claimed = append(f.claimed, stepsOf(check.Command)...)
	}
	return f
}

// success describes work that breaks no rule.
func (f *facts) success() string {
	if f.readOnly {
		return "completed without changes: " + f.NoMatchingPlanReason
	}
	return fmt.Sprintf("completed: %d changed files, %d required checks", len(f.Files), len(f.RequiredChecks))
}

// rules are checked in order; fails returns why a rule is broken, or "".
var rules = []struct {
	outcome Outcome
	fails   func(*facts) string
}{
	{Failed, turnFailed},
	{Failed, statusFailed},
	{Blocked, turnInterrupted},
	{Blocked, closeoutMissing},
	{Blocked, statusBlocked},
	{Blocked, blockersRemain},
	{Blocked, taskIncomplete},
	{Blocked, nothingChanged},
	{Blocked, filesDiffer},
	{Blocked, testsMissing},
	{Blocked, checksUnconfirmed},
	{Blocked, planUnclosed},
	{Blocked, notesMissing},
}
