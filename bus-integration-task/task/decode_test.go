package task

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseRef(t *testing.T) {
	t.Parallel()
	for _, ref := range []string{"busdk#81.1", "acme/payroll#123.1", "123", "123.1", "a:b_c-d", strings.Repeat("a", MaxRef)} {
		if got, err := ParseRef(ref); got != ref || err != nil {
			t.Errorf("ParseRef(%q) = %q, %v", ref, got, err)
		}
	}
	for _, ref := range []string{"", "-x", "/etc", "a/../b", "..", "a b", "a\n", "a\x00", "ä", "a;b", "a*", "a>", strings.Repeat("a", MaxRef+1)} {
		if got, err := ParseRef(ref); got != "" || !errors.Is(err, ErrInvalid) {
			t.Errorf("ParseRef(%q) = %q, %v", ref, got, err)
		}
	}
}

func TestParseRecipient(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"bus-dev": "bus-dev", "@bus-dev": "bus-dev", "a.b_c": "a.b_c"} {
		if got, err := ParseRecipient(in); got != want || err != nil {
			t.Errorf("ParseRecipient(%q) = %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "@", "@@a", "-x", ".git", "..", "a/b", "../x", "a b", "a\x00", strings.Repeat("a", MaxRecipient+1)} {
		if _, err := ParseRecipient(in); !errors.Is(err, ErrInvalid) {
			t.Errorf("ParseRecipient(%q): %v", in, err)
		}
	}
}

func TestDecodeNames(t *testing.T) {
	t.Parallel()
	legacy := map[string]string{
		"bus.dev.task.created": Created, "bus.dev.task.new": Created, "bus.dev.task.open": Created, "bus.dev.task.reopened": Reopened,
		"bus.dev.task.claimed": Claimed, "bus.dev.task.running": Progress, "bus.dev.task.message": Message,
		"bus.dev.task.approval.requested": ApprovalRequested, "bus.dev.task.done": Done, "bus.dev.task.closed": Closed,
	}
	for _, name := range Names() {
		want := name
		if l, ok := legacy[name]; ok {
			want = l
			delete(legacy, name)
		} else if strings.HasPrefix(name, "bus.dev.") {
			continue
		}
		e, err := Decode(eventID(1), name, "s", time.Time{}, []byte(`{"work_ref":"a#1"}`))
		if err != nil || e.Name != want || e.problem != "" {
			t.Errorf("%s: %q, %v, %q", name, e.Name, err, e.problem)
		}
	}
	if len(legacy) != 0 {
		t.Errorf("Names lacks %v", legacy)
	}
	if names := Names(); len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Error("Names has duplicates")
	}
}

// Programs that publish legacy names have no attempts, and their tasks must end all the same.
func TestLegacyLog(t *testing.T) {
	t.Parallel()
	var s State
	for i, name := range []string{"new", "claimed", "running", "done"} {
		e, err := Decode(eventID(i+1), "bus.dev.task."+name, "", time.Time{}, []byte(`{"work_ref":"a#1","recipient":"@x"}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Apply(e); !got.Applied() {
			t.Fatalf("%s: %+v", name, got)
		}
	}
	if s.Status != StatusDone || s.Recipient != "x" {
		t.Errorf("%+v", s)
	}
}

func TestDecodeRejects(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ id, payload string }{
		{"", `{"work_ref":"a"}`},
		{"evt_1", `{"work_ref":"a"}`},
		{"evt_000000000000000000x", `{"work_ref":"a"}`},
		{eventID(1), ``},
		{eventID(1), `[]`},
		{eventID(1), `{}`},
		{eventID(1), `{"work_ref":"../a"}`},
		{eventID(1), `{"work_ref":7}`},
		{eventID(1), `{"work_ref":"a"`},
		{eventID(1), `{"work_ref":"a","body":"` + strings.Repeat("x", MaxPayload) + `"}`},
	} {
		e, err := Decode(tt.id, Created, "", time.Time{}, []byte(tt.payload))
		if !errors.Is(err, ErrInvalid) || e.ID != "" || len(err.Error()) > 500 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %.80s: %+v, %v", tt.id, tt.payload, e.ID, err)
		}
	}
}

// The server counts a defective event of a task, so its readers must, or their conditional
// appends would fail for ever.
func TestDefectiveEventsAreSeen(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, members string }{
		{"bus.task.unknown", ``},
		{Claimed, `,"attempt_id":"a b","worker_id":"w"`},
		{Claimed, `,"attempt_id":"` + strings.Repeat("a", MaxID+1) + `"`},
		{Claimed, `,"lease_seconds":"long"`},
		{Claimed, `,"lease_seconds":1e300`},
		{Claimed, `,"labels":[]`},
		{Claimed, `,"worker_id":"\u001b[2J"`},
		{Progress, `,"commit":"--upload-pack=x"`},
		{Progress, `,"delivered_id":"7"`},
		{Assigned, `,"recipient":"../x"`},
		{Reopened, `,"branch":"a\nb"`},
		{Reopened, `,"app_server_thread_id":"` + strings.Repeat("a", MaxField+1) + `"`},
	} {
		e, err := Decode(eventID(2), tt.name, "", time.Time{}, []byte(`{"work_ref":"busdk#1.1"`+tt.members+`}`))
		if err != nil {
			t.Errorf("%s%.80s: %v", tt.name, tt.members, err)
			continue
		}
		var s State
		apply(t, &s, "created")
		if got := s.Apply(e); got.Kind != ChangeInvalid || got.Reason == "" || s.LastID != eventID(2) || s.Status != StatusOpen {
			t.Errorf("%s%.80s: %+v, %s", tt.name, tt.members, got, s.LastID)
		}
	}
}

func TestDecodeIgnoresUnknownMembers(t *testing.T) {
	t.Parallel()
	e, err := Decode(eventID(1), Created, "cli", time.Unix(1, 0), []byte(`{"future":{"a":[1]},"work_ref":"a#1","recipient":"x","text":"Fix"}`))
	if err != nil || e.problem != "" || e.Text != "Fix" || e.Source != "cli" || !e.Time.Equal(time.Unix(1, 0)) {
		t.Errorf("%+v, %v", e, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range Names() {
		f.Add(eventID(1), name, `{"work_ref":"a#1","recipient":"x","attempt_id":"A","worker_id":"w","status":"open"}`)
	}
	f.Fuzz(func(t *testing.T, id, name, payload string) {
		e, err := Decode(id, name, "", time.Time{}, []byte(payload))
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%v is of no kind", err)
			}
			return
		}
		var s State
		if c := s.Apply(e); s.Ref != e.WorkRef || s.LastID != id || strings.ContainsAny(c.Reason+s.Title+s.Note, "\n\x1b") {
			t.Errorf("%+v, %+v", c, s)
		}
		if _, err := json.Marshal(e.Payload); err != nil {
			t.Error(err)
		}
	})
}
