package task

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// check compares a world with the rules, through the Checker, which shares no code with State.
func (m *model) check(w *world) {
	var c Checker
	ends, announcedIn := []entry{}, map[uint8]int{}
	s := m.state(w, w.log.n)
	for n, e := range w.log.list[:w.log.n] {
		if e.adversary != 0 {
			continue
		}
		before := c.tasks["busdk#1.1"]
		phase := ""
		if before != nil {
			phase = before.phase
		}
		c.Add(modelEvent(e, n+1))
		if after := c.tasks["busdk#1.1"].phase; after == "ended" && phase != "ended" {
			ends = append(ends, e)
		}
		if e.name == mAnnounced {
			announcedIn[e.commit] = len(ends)
		}
	}
	for _, v := range c.violations {
		m.fail(w, string(v.Kind))
	}
	independent := c.tasks["busdk#1.1"]
	if (independent.phase == "ended") != s.Status.Ended() {
		m.fail(w, "foreign end")
	}
	if independent.holder != s.Attempt.ID {
		m.fail(w, "two holders")
	}
	if len(ends) > s.Round {
		m.fail(w, "two ends")
	}
	rounds := make([][]uint8, len(ends)+1) // commits in the primary branch, by round
	for _, commit := range w.repo {
		if round, ok := announcedIn[commit]; commit != 0 && ok {
			rounds[round] = append(rounds[round], commit)
		} else if commit != 0 {
			m.fail(w, "promoted without announcement")
		}
	}
	for round, commits := range rounds {
		if len(commits) > 1 {
			m.fail(w, "promoted twice")
		}
		if round >= len(ends) {
			continue
		}
		switch end := ends[round]; {
		case end.name == mDone && !slices.Contains(w.repo[:], end.commit):
			m.fail(w, "done without promotion")
		case end.name == mFailed && len(commits) > 0:
			m.fail(w, "lost commit")
		}
	}
}

// findStuck looks for a world from which no end can be reached. A task that waits for an
// attempt which the budget does not have, is not stuck.
func (m *model) findStuck() {
	reached := make([]bool, len(m.list))
	var queue []int32
	for i := range m.list {
		w := &m.list[i]
		s := m.state(w, w.log.n)
		d := s.Decide(Worker{Recipient: "bus-dev"}, MaxLease)
		wants := !m.noSupersede && d.Action == Supersede || d.Action == Claim
		if s.Status.Ended() || w.left.attempts == 0 && wants {
			reached[i] = true
			queue = append(queue, int32(i))
		}
	}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, parent := range m.parents[i] {
			if !reached[parent] {
				reached[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	if i := slices.Index(reached, false); i >= 0 {
		m.fail(&m.list[i], "stuck")
	}
}

// describe shows a world and the log that led to it.
func (w world) describe() string {
	var b strings.Builder
	for n, e := range w.log.list[:w.log.n] {
		fmt.Fprintf(&b, "  %2d %s adversary=%d\n", n+1, e, e.adversary)
	}
	return fmt.Sprintf("log:\n%sworkers %+v\nnet %+v\nlock %d, repository %v, left %+v", b.String(), w.workers, w.net, w.owner, w.repo, w.left)
}

var scopes = map[string]budget{
	"lease":      {attempts: 3},
	"crash":      {attempts: 3, crashes: 2},
	"late":       {attempts: 2, late: 2},
	"lost":       {attempts: 2, lost: 1, late: 1, crashes: 1},
	"duplicate":  {attempts: 2, duplicates: 1, crashes: 1},
	"say":        {attempts: 2, says: 1, crashes: 1},
	"cancel":     {attempts: 2, cancels: 1, crashes: 1},
	"reopen":     {attempts: 3, cancels: 1, reopens: 1},
	"release":    {attempts: 3, releases: 1, crashes: 1},
	"adversary":  {attempts: 2, stale: 1, crashes: 1},
	"everything": {attempts: 2, duplicates: 1, late: 1, crashes: 1, cancels: 1, says: 1},
}

func TestModelKeepsRules(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(scopes)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m model
			m.explore(scopes[name])
			if m.problem != "" {
				t.Fatalf("%s\n%s", m.problem, m.at.describe())
			}
			t.Logf("%d worlds", len(m.list))
			if len(m.list) < 100 {
				t.Errorf("only %d worlds", len(m.list))
			}
		})
	}
}

// Each rule that is broken breaks an invariant, so the model can see it.
func TestModelCatchesBrokenRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, scope, want string
		rules             rules
	}{
		{"unconditional append", "lease", string(BadClaim), rules{unconditional: true}},
		{"no lock", "lease", "promoted", rules{noLock: true}},
		{"no recovery", "crash", "promoted twice", rules{noRecover: true}},
		{"no announcement", "lease", "promoted", rules{noAnnouncement: true}},
		{"no supersede", "crash", "stuck", rules{noSupersede: true}},
		{"any end counts", "adversary", "foreign end", rules{mutate: func(s *State, e *Event) {
			if e.Name == Done && s.Attempt.ID != "" {
				e.AttemptID = s.Attempt.ID
			}
		}}},
		{"any claim counts", "adversary", "two holders", rules{mutate: func(s *State, e *Event) {
			if e.Name == Claimed {
				e.Supersedes = s.Attempt.ID
			}
		}}},
		{"unconditional end", "cancel", string(SecondEnd), rules{unconditionalEnds: true}},
		{"unconditional end of a lost attempt", "lease", string(LostHolder), rules{unconditionalEnds: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := model{rules: tt.rules}
			m.explore(scopes[tt.scope])
			if !strings.HasPrefix(m.problem, tt.want) {
				t.Errorf("the model reports %q, want %q\n%s", m.problem, tt.want, m.at.describe())
			}
		})
	}
}
