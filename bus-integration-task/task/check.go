package task

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// ViolationKind is a rule that a log breaks.
type ViolationKind string

// The kinds of violations.
const (
	Disorder          ViolationKind = "disorder"           // IDs do not ascend, so an event is doubled or reordered
	BadClaim          ViolationKind = "bad claim"          // of a task that was not to be had
	EarlyClaim        ViolationKind = "early claim"        // of a task whose lease had not run out
	LostHolder        ViolationKind = "lost holder"        // an attempt that does not hold the task published for it
	SecondEnd         ViolationKind = "second end"         // a round has two
	UnannouncedCommit ViolationKind = "unannounced commit" // of a Done event
	DoubledCommit     ViolationKind = "doubled commit"     // two Done events have the same one
	Unended           ViolationKind = "unended"            // the last round of a task has no end
)

// Violation is a place where a log breaks a rule.
type Violation struct {
	Kind    ViolationKind
	WorkRef string
	EventID string
	Detail  string // one line
}

func (v Violation) String() string {
	return fmt.Sprintf("%s: task %s: %s: %s", v.EventID, v.WorkRef, v.Kind, v.Detail)
}

// Checker reads a log and reports where workers broke the rules. It shares no code with
// [State], so that each tests the other. It is strict: a worker that appends on condition
// never publishes a stale event, so a stale event of a worker is a violation. Users may
// cancel, answer and write late.
//
// The zero value is ready. A Checker must not be used by several goroutines at once. It
// keeps about 200 bytes a task and the commits of all tasks.
type Checker struct {
	tasks      map[string]*checked
	commits    map[string]string // promoted commit: event
	lastID     string
	violations []Violation
}

type checked struct {
	phase      string // "", pending, open, held or ended
	holder     string
	renewed    time.Time
	lease      time.Duration
	lastID     string
	announced  []string // commits of the attempts since the last end
	endedBy    string
	violations int
}

// maxViolations is how many violations of one task are reported.
const maxViolations = 10

// clockTolerance allows for timestamps in whole seconds.
const clockTolerance = time.Second

// Check reads a whole log, in which every task is expected to have ended.
func Check(events []Event) []Violation {
	var c Checker
	for _, e := range events {
		c.Add(e)
	}
	return c.Finish()
}

// Add reads the next event of the log, which may interleave tasks, and reports whether it
// keeps the rules.
func (c *Checker) Add(e Event) bool {
	if c.tasks == nil {
		c.tasks, c.commits = map[string]*checked{}, map[string]string{}
	}
	t := c.tasks[e.WorkRef]
	if t == nil {
		t = &checked{}
		c.tasks[e.WorkRef] = t
	}
	before := t.violations
	switch {
	case e.ID <= c.lastID:
		c.report(t, e, Disorder, "follows "+c.lastID)
		return false
	case e.problem == "":
		c.read(t, e)
	}
	c.lastID, t.lastID = e.ID, e.ID
	return t.violations == before
}

// Finish reports all violations, tasks without an end included. More events may be added.
func (c *Checker) Finish() []Violation {
	all := slices.Clone(c.violations)
	for ref, t := range c.tasks {
		if t.phase == "open" || t.phase == "held" {
			all = append(all, Violation{Kind: Unended, WorkRef: ref, EventID: t.lastID, Detail: "the task is " + t.phase})
		}
	}
	slices.SortStableFunc(all, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}

func (c *Checker) read(t *checked, e Event) {
	switch e.Name {
	case Created:
		if t.phase == "" && e.Recipient != "" && (e.Status == "" || e.Status == "open" || e.Status == "pending") {
			t.phase = map[bool]string{true: "pending", false: "open"}[e.Status == "pending"]
		}
	case Approved:
		if t.phase == "pending" {
			t.phase = "open"
		}
	case Assigned:
		if (t.phase == "open" || t.phase == "held") && e.Recipient != "" {
			t.phase, t.holder = "open", ""
		}
	case Reopened:
		if t.phase == "ended" {
			t.phase, t.endedBy = "open", ""
		}
	case Claimed:
		c.readClaim(t, e)
	case ApprovalAnswered:
	case Message:
		if e.AttemptID != "" {
			c.readHolder(t, e)
		}
	case Canceled:
		switch {
		case e.AttemptID != "":
			c.readHolder(t, e)
		case t.phase != "" && t.phase != "ended":
			t.end("a user")
		}
	default:
		c.readHolder(t, e)
	}
}

func (c *Checker) readClaim(t *checked, e Event) {
	switch {
	case t.phase == "open" && e.Supersedes == "":
	case t.phase == "held" && e.Supersedes == t.holder && e.AttemptID != t.holder:
		if quiet := e.Time.Sub(t.renewed); !e.Time.IsZero() && !t.renewed.IsZero() && quiet < t.lease-clockTolerance {
			c.report(t, e, EarlyClaim, fmt.Sprintf("attempt %s was quiet for %s of its lease of %s", t.holder, quiet, t.lease))
		}
	default:
		c.report(t, e, BadClaim, fmt.Sprintf("attempt %s supersedes %q; the task is %q, held by %q", e.AttemptID, e.Supersedes, t.phase, t.holder))
		return
	}
	t.phase, t.holder, t.renewed = "held", e.AttemptID, e.Time
	t.lease = DefaultLease
	if e.LeaseSeconds > 0 {
		t.lease = min(MaxLease, time.Duration(min(e.LeaseSeconds, 1<<20))*time.Second)
	}
}

func (c *Checker) readHolder(t *checked, e Event) {
	ends := e.Name == Done || e.Name == Closed || e.Name == Blocked || e.Name == Failed || e.Name == Canceled
	if t.phase == "ended" && ends {
		c.report(t, e, SecondEnd, fmt.Sprintf("%s of attempt %s; the round was ended by %s", e.Name, e.AttemptID, t.endedBy))
		return
	}
	if t.phase != "held" || e.AttemptID != t.holder {
		c.report(t, e, LostHolder, fmt.Sprintf("%s of attempt %q; the task is %q, held by %q", e.Name, e.AttemptID, t.phase, t.holder))
		return
	}
	t.renewed = e.Time
	switch {
	case e.Name == Progress && e.Commit != "":
		t.announced = append(t.announced, e.Commit)
	case e.Name == Released:
		t.phase, t.holder = "open", ""
	case ends:
		if e.Name == Done && e.Commit != "" {
			c.readCommit(t, e)
		}
		t.end("attempt " + e.AttemptID)
	}
}

func (c *Checker) readCommit(t *checked, e Event) {
	if !slices.Contains(t.announced, e.Commit) {
		c.report(t, e, UnannouncedCommit, e.Commit)
	}
	if first, ok := c.commits[e.Commit]; ok {
		c.report(t, e, DoubledCommit, e.Commit+" is the result of "+first)
		return
	}
	c.commits[e.Commit] = e.ID
}

func (t *checked) end(by string) {
	t.phase, t.holder, t.endedBy, t.announced = "ended", "", by, nil
}

func (c *Checker) report(t *checked, e Event, kind ViolationKind, detail string) {
	if t.violations++; t.violations <= maxViolations {
		c.violations = append(c.violations, Violation{Kind: kind, WorkRef: e.WorkRef, EventID: e.ID, Detail: line(detail, maxReason)})
	}
}
