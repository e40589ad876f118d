package task

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// What agents and settings name never makes an event one that readers ignore.
func TestBoundedPayloadIsValid(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"model-1", strings.Repeat("ö", MaxField), "two\nlines", "\x1b[2J", ""} {
		p := Payload{WorkRef: "busdk#1.1", AttemptID: "A", ThreadID: text, RunID: text, Labels: Labels{text, text, text, text, text, text}}
		before := p
		raw, err := json.Marshal(p.Bounded())
		if err != nil {
			t.Fatal(err)
		}
		e, err := Decode(eventID(1), Progress, "", time.Time{}, raw)
		if err != nil || e.problem != "" {
			t.Errorf("%q: %v, %s", text, err, e.problem)
		}
		if kept := e.ThreadID == text; kept != validField(text) || kept && (e.RunID != text || e.Labels != before.Labels) || !kept && e.ThreadID != "" {
			t.Errorf("%q: %+v", text, e.Payload)
		}
	}
}

func TestHolderClosesAnApprovalRequest(t *testing.T) {
	t.Parallel()
	var s State
	for _, e := range log(t, "created;claimed by=A;requested by=A approval=1;requested by=A approval=2;message by=B approval=1;message by=A approval=2") {
		s.Apply(e)
	}
	if len(s.Approvals) != 1 || s.Approvals[0].ID != "1" || s.Attempt.LastID != eventID(6) {
		t.Errorf("%+v", s)
	}
}
