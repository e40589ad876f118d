package task

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestCheckFindsViolations(t *testing.T) {
	t.Parallel()
	const good = "created;claimed by=A lease=5;progress by=A;message;progress by=A commit=1;done by=A commit=1;canceled;answered approval=1 decision=accept"
	for _, tt := range []struct {
		log  string
		want []ViolationKind
	}{
		{good, nil},
		{"created status=pending", nil},
		{"created;canceled;reopened;claimed by=A;blocked by=A", nil},
		{"created;claimed by=A;released by=A;claimed by=B;failed by=B", nil},
		{"created;claimed by=A lease=2;message;claimed by=B over=A;done by=B", nil},
		{"created;claimed by=A;progress by=A commit=1;assigned to=x;claimed by=B;done by=B commit=1", nil},
		{"created", []ViolationKind{Unended}},
		{"created;claimed by=A", []ViolationKind{Unended}},
		{"created;claimed by=A;claimed by=B;done by=A", []ViolationKind{BadClaim}},
		{"created;claimed by=A over=B;canceled", []ViolationKind{BadClaim}},
		{"created;canceled;claimed by=A", []ViolationKind{BadClaim}},
		{"created;claimed by=A lease=60;claimed by=B over=A;done by=B", []ViolationKind{EarlyClaim}},
		{"created;claimed by=A lease=1;claimed by=B over=A;progress by=A;done by=B", []ViolationKind{LostHolder}},
		{"created;claimed by=A lease=1;claimed by=B over=A;done by=A;done by=B", []ViolationKind{LostHolder}},
		{"created;claimed by=A;canceled;progress by=A", []ViolationKind{LostHolder}},
		{"created;claimed by=A;done by=A;done by=A", []ViolationKind{SecondEnd}},
		{"created;claimed by=A;canceled;failed by=A", []ViolationKind{SecondEnd}},
		{"created;claimed by=A;done by=A commit=1", []ViolationKind{UnannouncedCommit}},
		{"created;claimed by=A;progress by=A commit=1;done by=A commit=1;reopened;claimed by=B;progress by=B commit=1;done by=B commit=1", []ViolationKind{DoubledCommit}},
	} {
		if got := kinds(Check(log(t, tt.log))); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.log, got, tt.want)
		}
	}
	events := log(t, good)
	events = append(events, events[3])
	if got := kinds(Check(events)); !slices.Equal(got, []ViolationKind{Disorder}) {
		t.Errorf("a doubled event: %q", got)
	}
}

func kinds(violations []Violation) (list []ViolationKind) {
	for _, v := range violations {
		list = append(list, v.Kind)
	}
	return list
}

// The checker and the state machine share no code and must agree on any log: an event of a
// worker counts exactly if the checker has nothing to say about it.
func TestCheckAgreesWithState(t *testing.T) {
	t.Parallel()
	words := []string{
		"created", "created status=pending", "approved", "assigned to=bus-dev", "reopened", "canceled", "message",
		"claimed", "progress", "message", "released", "requested approval=1", "done", "blocked", "failed", "closed", "canceled",
	}
	counted := 0
	for seed := range uint64(5_000) {
		random := rand.New(rand.NewPCG(seed, 1))
		var s State
		var c Checker
		for n := range 20 {
			word := words[random.IntN(len(words))]
			if n == 0 {
				word = "created"
			}
			if i := slices.Index(words, "claimed"); slices.Index(words[i:], word) >= 0 && random.IntN(8) > 0 {
				word += " by=" + string(rune('A'+random.IntN(3)))
				if s.Attempt.ID != "" && random.IntN(2) == 0 {
					word += " over=" + s.Attempt.ID
				}
			}
			e := event(t, n+1, word)
			e.Time = time.Time{}
			if e.AttemptID == "" && slices.Contains([]string{Claimed, Progress, Released, ApprovalRequested, Done, Blocked, Failed, Closed}, e.Name) {
				continue // defective
			}
			before := 0
			if known := c.tasks[e.WorkRef]; known != nil {
				before = known.violations
			}
			change := s.Apply(e)
			c.Add(e)
			if change.Kind == ChangeStale && e.Name == ApprovalRequested && s.Holds(e.AttemptID) {
				continue // requested twice by the holder, which is harmless
			}
			found := c.tasks[e.WorkRef].violations > before
			if e.AttemptID != "" && change.Applied() == found {
				t.Fatalf("seed %d, event %d %q: %+v, but the checker reports %v", seed, n, word, change, c.violations)
			}
			if change.Applied() && e.AttemptID != "" {
				counted++
			}
			held := c.tasks[e.WorkRef]
			if held.holder != s.Attempt.ID || (held.phase == "ended") != s.Status.Ended() {
				t.Fatalf("seed %d, event %d %q: state %s held by %q, checker %s held by %q", seed, n, word, s.Status, s.Attempt.ID, held.phase, held.holder)
			}
		}
	}
	if counted < 5_000 {
		t.Errorf("only %d events of workers counted", counted)
	}
}

func ExampleCheck() {
	claim := Event{ID: "evt_0000000000000000001", Name: Claimed, Payload: Payload{WorkRef: "busdk#1", AttemptID: "a1", WorkerID: "w1"}}
	for _, v := range Check([]Event{claim}) {
		fmt.Println(v)
	}
	// Output:
	// evt_0000000000000000001: task busdk#1: bad claim: attempt a1 supersedes ""; the task is "", held by ""
}
