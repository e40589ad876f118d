package task

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestApply(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		before, event string
		kind          ChangeKind
		status        Status
		holder, lost  string
	}{
		{"", "created", ChangeOpened, StatusOpen, "", ""},
		{"", "created status=open", ChangeOpened, StatusOpen, "", ""},
		{"", "created status=pending", ChangePending, StatusPending, "", ""},
		{"", "created status=done", ChangeInvalid, StatusUnknown, "", ""},
		{"", "created to=", ChangeInvalid, StatusUnknown, "", ""},
		{"", "claimed by=A", ChangeStale, StatusUnknown, "", ""},
		{"", "assigned to=x", ChangeStale, StatusUnknown, "", ""},
		{"", "message text=hello", ChangeStale, StatusUnknown, "", ""},
		{"", "canceled", ChangeStale, StatusUnknown, "", ""},
		{"", "reopened", ChangeStale, StatusUnknown, "", ""},
		{"created", "created", ChangeStale, StatusOpen, "", ""},
		{"created", "approved", ChangeStale, StatusOpen, "", ""},
		{"created", "reopened", ChangeStale, StatusOpen, "", ""},
		{"created status=pending", "approved", ChangeOpened, StatusOpen, "", ""},
		{"created status=pending", "claimed by=A", ChangeStale, StatusPending, "", ""},
		{"created status=pending", "assigned to=x", ChangeAssigned, StatusPending, "", ""},
		{"created status=pending", "canceled", ChangeEnded, StatusCanceled, "", ""},
		{"created", "claimed by=A", ChangeClaimed, StatusClaimed, "A", ""},
		{"created", "claimed", ChangeInvalid, StatusOpen, "", ""},
		{"created", "claimed attempt=A", ChangeInvalid, StatusOpen, "", ""},
		{"created", "claimed worker=w", ChangeInvalid, StatusOpen, "", ""},
		{"created", "claimed by=A over=B", ChangeStale, StatusOpen, "", ""},
		{"created", "claimed by=A to=other", ChangeStale, StatusOpen, "", ""},
		{"created", "assigned to=x", ChangeOpened, StatusOpen, "", ""},
		{"created", "assigned", ChangeInvalid, StatusOpen, "", ""},
		{"created;claimed by=A", "claimed by=B", ChangeStale, StatusClaimed, "A", ""},
		{"created;claimed by=A", "claimed by=B over=A", ChangeClaimed, StatusClaimed, "B", "A"},
		{"created;claimed by=A", "claimed by=A over=A", ChangeStale, StatusClaimed, "A", ""},
		{"created;claimed by=A;claimed by=B over=A", "claimed by=C over=A", ChangeStale, StatusClaimed, "B", ""},
		{"created;claimed by=A;claimed by=B over=A", "done by=A", ChangeStale, StatusClaimed, "B", ""},
		{"created;claimed by=A;claimed by=B over=A", "canceled by=A", ChangeStale, StatusClaimed, "B", ""},
		{"created;claimed by=A;claimed by=B over=A", "released by=A", ChangeStale, StatusClaimed, "B", ""},
		{"created;claimed by=A", "progress by=A", ChangeRenewed, StatusRunning, "A", ""},
		{"created;claimed by=A", "progress by=B", ChangeStale, StatusClaimed, "A", ""},
		{"created;claimed by=A", "progress", ChangeStale, StatusClaimed, "A", ""},
		{"created;claimed by=A", "message by=A text=hello", ChangeRenewed, StatusClaimed, "A", ""},
		{"created;claimed by=A", "message by=B text=hello", ChangeStale, StatusClaimed, "A", ""},
		{"created;claimed by=A", "message text=hello", ChangeSaid, StatusClaimed, "A", ""},
		{"created;claimed by=A", "released by=A", ChangeReleased, StatusOpen, "", "A"},
		{"created;claimed by=A", "assigned to=x", ChangeOpened, StatusOpen, "", "A"},
		{"created;claimed by=A;assigned to=x", "done by=A", ChangeStale, StatusOpen, "", ""},
		{"created;claimed by=A;assigned to=x", "claimed by=B to=bus-dev", ChangeStale, StatusOpen, "", ""},
		{"created;claimed by=A", "done by=A", ChangeEnded, StatusDone, "", ""},
		{"created;claimed by=A", "closed by=A", ChangeEnded, StatusDone, "", ""},
		{"created;claimed by=A", "blocked by=A", ChangeEnded, StatusBlocked, "", ""},
		{"created;claimed by=A", "failed by=A", ChangeEnded, StatusFailed, "", ""},
		{"created;claimed by=A", "canceled by=A", ChangeEnded, StatusCanceled, "", ""},
		{"created;claimed by=A", "canceled", ChangeEnded, StatusCanceled, "", "A"},
		{"created;claimed by=A", "done", ChangeStale, StatusClaimed, "A", ""},
		{"created", "done by=A", ChangeStale, StatusOpen, "", ""},
		{"created", "done", ChangeStale, StatusOpen, "", ""},
		{"created", "progress", ChangeStale, StatusOpen, "", ""},
		{"created", "released", ChangeStale, StatusOpen, "", ""},
		{"created", "requested approval=7", ChangeStale, StatusOpen, "", ""},
		{"created;claimed by=A;done by=A", "done by=A", ChangeStale, StatusDone, "", ""},
		{"created;claimed by=A;done by=A", "failed by=A", ChangeStale, StatusDone, "", ""},
		{"created;claimed by=A;done by=A", "canceled", ChangeStale, StatusDone, "", ""},
		{"created;claimed by=A;done by=A", "claimed by=B", ChangeStale, StatusDone, "", ""},
		{"created;claimed by=A;done by=A", "assigned to=x", ChangeStale, StatusDone, "", ""},
		{"created;claimed by=A;done by=A", "approved", ChangeStale, StatusDone, "", ""},
		{"created;claimed by=A;done by=A", "reopened", ChangeOpened, StatusOpen, "", ""},
		{"created;canceled;reopened", "claimed by=B", ChangeClaimed, StatusClaimed, "B", ""},
		{"created;claimed by=A", "requested by=A approval=7", ChangeRequested, StatusRunning, "A", ""},
		{"created;claimed by=A", "requested by=A", ChangeInvalid, StatusClaimed, "A", ""},
		{"created;claimed by=A;requested by=A approval=7", "requested by=A approval=7", ChangeStale, StatusRunning, "A", ""},
		{"created;claimed by=A;requested by=A approval=7", "answered approval=7 decision=accept", ChangeAnswered, StatusRunning, "A", ""},
		{"created;claimed by=A;requested by=A approval=7", "answered approval=7 decision=yes", ChangeInvalid, StatusRunning, "A", ""},
		{"created;claimed by=A;requested by=A approval=7", "answered approval=8 decision=accept", ChangeStale, StatusRunning, "A", ""},
		{"created;claimed by=A;requested by=A approval=7;answered approval=7 decision=accept", "answered approval=7 decision=decline", ChangeStale, StatusRunning, "A", ""},
		{"created;claimed by=A;requested by=A approval=7;claimed by=B over=A", "answered approval=7 decision=accept", ChangeStale, StatusClaimed, "B", ""},
	} {
		t.Run(tt.before+";"+tt.event, func(t *testing.T) {
			t.Parallel()
			var s State
			apply(t, &s, tt.before)
			before := s
			e := event(t, 100, tt.event)
			got := s.Apply(e)
			if got.Kind != tt.kind || s.Status != tt.status || s.Attempt.ID != tt.holder || got.Lost != tt.lost {
				t.Fatalf("%+v, status %q, holder %q; want %s, %q, %q, lost %q", got, s.Status, s.Attempt.ID, tt.kind, tt.status, tt.holder, tt.lost)
			}
			if s.LastID != e.ID {
				t.Errorf("LastID = %s", s.LastID)
			}
			if got.Applied() == (got.Reason != "") || strings.Contains(got.Reason, "  ") || before.Status.Ended() && !got.Applied() && e.Name == Done && got.Reason != "the task has ended" {
				t.Errorf("%+v: a reason belongs to what changes nothing", got)
			}
			// The lease runs from what the holder sent.
			if want := got.Applied() && s.Holds(e.AttemptID); got.Renewed != want || want && s.Attempt.LastID != e.ID {
				t.Errorf("renewed %v by %s, attempt %+v", got.Renewed, e.Name, s.Attempt)
			}
			if !got.Applied() {
				before.Ref, before.LastID = s.Ref, s.LastID
				if !reflect.DeepEqual(before, s) {
					t.Errorf("%s changed the state:\n%+v\n%+v", got.Kind, before, s)
				}
			}
			if s.Status.Held() != (s.Attempt.ID != "") {
				t.Errorf("status %s with attempt %+v", s.Status, s.Attempt)
			}
			if again := s.Apply(e); again.Kind != ChangeDuplicate {
				t.Errorf("the second delivery is %+v", again)
			}
		})
	}
}

func TestApplyIgnoresOlderEvents(t *testing.T) {
	t.Parallel()
	var s State
	apply(t, &s, "created;claimed by=A;progress by=A")
	if got := s.Apply(event(t, 2, "canceled")); got.Kind != ChangeDuplicate || s.Status != StatusRunning {
		t.Errorf("%+v, %s", got, s.Status)
	}
	other := event(t, 9, "canceled")
	other.WorkRef = "busdk#1.2"
	if got := s.Apply(other); got.Kind != ChangeInvalid || s.LastID != eventID(3) {
		t.Errorf("%+v, %s", got, s.LastID)
	}
}

func TestApplyRefusesDefects(t *testing.T) {
	t.Parallel()
	var s State
	apply(t, &s, "created;claimed by=A")
	before := s
	e := event(t, 3, "done by=A")
	e.ID = "3"
	if got := s.Apply(e); got.Kind != ChangeInvalid || got.Reason == "" || !reflect.DeepEqual(s, before) {
		t.Errorf("event with ID 3: %+v, %+v", got, s)
	}
	e.ID, e.Name = eventID(3), "bus.task.other"
	before.LastID = e.ID
	if got := s.Apply(e); got.Kind != ChangeInvalid || got.Reason == "" || !reflect.DeepEqual(s, before) {
		t.Errorf("event with an unknown name: %+v, %+v", got, s)
	}
	for _, n := range []int{2, 3} {
		if got := s.Apply(event(t, n, "done by=A")); got.Reason == "" {
			t.Errorf("%+v has no reason", got)
		}
	}
	other := event(t, 9, "canceled")
	other.WorkRef = "busdk#1.2"
	if got := s.Apply(other); got.Reason == "" {
		t.Errorf("%+v has no reason", got)
	}
}

// Every field of the events reaches the state, and stays until a later event replaces it.
func TestStateHasAllFields(t *testing.T) {
	t.Parallel()
	labels := Labels{"profile", "model", "observed", "high", "api-key", "env"}
	var s State
	at := time.Unix(7, 0)
	step := func(n int, name string, p Payload) {
		t.Helper()
		p.WorkRef = "busdk#1.1"
		if got := s.Apply(Event{ID: eventID(n), Name: name, Time: at, Payload: p}); !got.Applied() {
			t.Fatalf("%+v", got)
		}
	}
	want := func(want State) {
		t.Helper()
		want.Ref = "busdk#1.1"
		if !reflect.DeepEqual(s, want) {
			t.Fatalf("\n%+v, want\n%+v", s, want)
		}
	}
	step(1, Created, Payload{GroupID: "group", Recipient: "bus-dev", Sender: "user", Text: "title", ThreadID: "thread", Branch: "work/x", CreateBranch: true,
		BaseBranch: "main", WorktreeID: "tree", ReuseWorktree: true, Labels: labels})
	keeps := State{GroupID: "group", Recipient: "bus-dev", Sender: "user", Title: "title", CreatedID: eventID(1), OpenedID: eventID(1), Round: 1,
		Thread: Thread{ID: "thread"}, Branch: Branch{"work/x", true, "main", "tree", true}, Labels: labels}
	opened := keeps
	opened.Status, opened.LastID = StatusOpen, eventID(1)
	want(opened)

	step(2, Message, Payload{Text: "hello", Sender: "user"})
	step(3, Claimed, Payload{AttemptID: "A", WorkerID: "w", LeaseSeconds: 30, Text: "claimed"})
	held := keeps
	held.Status, held.LastID, held.Note, held.lastMessage = StatusClaimed, eventID(3), "claimed", eventID(2)
	held.Attempt = Attempt{ID: "A", WorkerID: "w", Lease: 30 * time.Second, ClaimID: eventID(3), LastID: eventID(3)}
	held.Messages = []Said{{EventID: eventID(2), Sender: "user", Text: "hello"}}
	want(held)

	step(4, ApprovalRequested, Payload{AttemptID: "A", ApprovalID: "7", Text: "may I", ThreadID: "other", Labels: Labels{ObservedModel: "other"}})
	held.Status, held.LastID, held.Attempt.LastID, held.Note = StatusRunning, eventID(4), eventID(4), "may I"
	held.Thread.ID, held.Labels.ObservedModel, held.Used.ObservedModel = "other", "other", "other"
	held.Approvals = []Approval{{ID: "7", EventID: eventID(4), Text: "may I"}}
	want(held)

	step(5, Progress, Payload{AttemptID: "A", Commit: commit1, BaseBranch: "promoted"})
	step(6, Progress, Payload{AttemptID: "A"})
	held.LastID, held.Attempt.LastID, held.Attempt.Commit = eventID(6), eventID(6), commit1
	held.Announced = Announcement{Commit: commit1, BaseBranch: "promoted", AttemptID: "A", Round: 1}
	want(held)

	released := s
	step(7, Released, Payload{AttemptID: "A", Text: "later", DeliveredID: eventID(2)})
	open := held
	open.Status, open.LastID, open.Note, open.Attempt, open.Approvals, open.Messages, open.Announced = StatusOpen, eventID(7), "later", Attempt{}, nil, nil, Announcement{}
	open.DeliveredID = eventID(2)
	want(open)
	s = released

	step(7, Done, Payload{AttemptID: "A", WorkerID: "w", Text: "ready", Commit: commit1, RunID: "run", DeliveredID: eventID(2), Branch: "work/y"})
	done := open
	done.Status, done.Note, done.Branch.Name, done.Branch.Create = StatusDone, "ready", "work/y", false
	done.End = End{eventID(7), StatusDone, 1, "A", "w", "ready", commit1, "run", at}
	done.RunID = "run"
	want(done)

	step(8, Reopened, Payload{Recipient: "bus-other", Text: "again", ThreadID: "third"})
	done.Status, done.LastID, done.OpenedID, done.Note, done.Round, done.Recipient, done.Thread.ID = StatusOpen, eventID(8), eventID(8), "", 2, "bus-other", "third"
	want(done)

	step(9, Canceled, Payload{Text: "no", ThreadID: "fourth"})
	done.Status, done.LastID, done.End = StatusCanceled, eventID(9), End{EventID: eventID(9), Status: StatusCanceled, Round: 2, Text: "no", Time: at}
	want(done)
}

func TestStateKeeps(t *testing.T) {
	t.Parallel()
	var s State
	apply(t, &s, "created text=Fix branch=work/x;claimed by=A lease=30;progress by=A thread=t1 text=half;blocked by=A text=stuck;reopened text=again")
	if s.Title != "Fix" || s.Branch.Name != "work/x" || s.Thread.ID != "t1" || s.Round != 2 || s.Note != "" ||
		s.CreatedID != eventID(1) || s.OpenedID != eventID(5) || s.End.Text != "stuck" || s.End.AttemptID != "A" || s.End.Round != 1 {
		t.Errorf("%+v", s)
	}
	apply(t, &s, "created;created;created;created;created;claimed by=B lease=30;progress by=B")
	if s.Attempt.Lease != 30*time.Second || s.Attempt.ClaimID != eventID(6) || s.Attempt.LastID != eventID(7) || !s.Holds("B") || s.Holds("") {
		t.Errorf("%+v", s.Attempt)
	}
}

func TestLease(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int]time.Duration{-1: DefaultLease, 0: DefaultLease, 1: time.Second, 1 << 40: MaxLease} {
		if got := lease(seconds); got != want {
			t.Errorf("lease(%d) = %s, want %s", seconds, got, want)
		}
	}
}

func TestMessagesWaitForDelivery(t *testing.T) {
	t.Parallel()
	var s State
	apply(t, &s, "created;message text=one;claimed by=A;message text=two;message text=three")
	if len(s.Messages) != 3 {
		t.Fatalf("%+v", s.Messages)
	}
	s.Apply(event(t, 6, "progress by=A delivered=1"))
	if len(s.Messages) != 3 {
		t.Fatalf("a delivery before the first message took one: %+v", s.Messages)
	}
	before := s
	s.Apply(event(t, 7, "progress by=A delivered=4"))
	if len(s.Messages) != 1 || s.Messages[0].Text != "three" || len(before.Messages) != 3 || before.Messages[0].Text != "one" {
		t.Errorf("%+v, the copy has %+v", s.Messages, before.Messages)
	}
	s.Apply(event(t, 8, "claimed by=B over=A"))
	s.Apply(event(t, 9, "progress by=A delivered=5"))
	if len(s.Messages) != 1 {
		t.Error("an attempt that lost the task took the message of the next one")
	}
	s.Apply(event(t, 10, "message by=B delivered=5"))
	if len(s.Messages) != 0 {
		t.Errorf("%+v", s.Messages)
	}
}

func TestStateIsBounded(t *testing.T) {
	t.Parallel()
	var s State
	apply(t, &s, "created;claimed by=A")
	long := strings.Repeat("ä", 1<<16)
	for n := 3; n < 1000; n += 2 {
		said, request := event(t, n, "message"), event(t, n+1, fmt.Sprintf("requested by=A approval=%d", n))
		said.Text, request.Text = long, long
		if got := s.Apply(said); got.Kind != ChangeSaid {
			t.Fatalf("%+v", got)
		}
		s.Apply(request)
	}
	if len(s.Messages) != MaxMessages || len(s.Messages[0].Text) > MaxMessage || !s.Messages[0].Cut || s.Missed != 499-MaxMessages {
		t.Errorf("%d messages, %d missed", len(s.Messages), s.Missed)
	}
	if len(s.Approvals) != MaxApprovals || len(s.Note) > MaxTitle || len(s.Approvals[0].Text) > MaxTitle {
		t.Errorf("%d approvals, note of %d bytes", len(s.Approvals), len(s.Note))
	}
	s.Apply(event(t, 1500, "progress by=A delivered="+fmt.Sprint(2*MaxMessages+1)))
	if len(s.Messages) != 0 || s.Missed == 0 {
		t.Errorf("%d messages, %d missed after delivery of those that were kept", len(s.Messages), s.Missed)
	}
	s.Apply(event(t, 2000, "progress by=A delivered=999"))
	if len(s.Messages) != 0 || s.Missed != 0 {
		t.Errorf("%d messages, %d missed after delivery", len(s.Messages), s.Missed)
	}
}

func TestTitleIsOneSafeLine(t *testing.T) {
	t.Parallel()
	var s State
	e := event(t, 1, "created")
	e.Text = "\x1b]0;title\a fix\nsecond line"
	s.Apply(e)
	if s.Title != "]0;title  fix" {
		t.Errorf("%q", s.Title)
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const lease = time.Minute
	for _, tt := range []struct {
		log    string
		worker Worker
		quiet  time.Duration
		want   Decision
	}{
		{"", Worker{}, 0, Decision{Action: Nothing}},
		{"created", Worker{}, 0, Decision{Action: Claim}},
		{"created", Worker{WorkRef: "busdk#1.1"}, 0, Decision{Action: Claim}},
		{"created", Worker{WorkRef: "busdk#1.2"}, 0, Decision{Action: Nothing}},
		{"created", Worker{Recipient: "other"}, 0, Decision{Action: Nothing}},
		{"created;assigned to=other", Worker{}, 0, Decision{Action: Nothing}},
		{"created;assigned to=other", Worker{Recipient: "other"}, 0, Decision{Action: Claim}},
		{"created status=pending", Worker{}, 0, Decision{Action: Nothing}},
		{"created status=pending;approved", Worker{}, 0, Decision{Action: Claim}},
		{"created;canceled", Worker{}, 0, Decision{Action: Nothing}},
		{"created;claimed by=A;done by=A", Worker{}, 2 * lease, Decision{Action: Nothing}},
		{"created;claimed by=A;done by=A;reopened", Worker{}, 0, Decision{Action: Claim}},
		{"created;claimed by=A", Worker{}, 0, Decision{Action: Wait, Wait: lease}},
		{"created;claimed by=A", Worker{}, lease - 1, Decision{Action: Wait, Wait: 1}},
		{"created;claimed by=A", Worker{}, lease, Decision{Action: Supersede, Supersedes: "A"}},
		{"created;claimed by=A", Worker{AttemptID: "A"}, 2 * lease, Decision{Action: Run}},
		{"created;claimed by=A;claimed by=B over=A", Worker{AttemptID: "A"}, 2 * lease, Decision{Action: Nothing}},
		{"created;claimed by=A;assigned to=other", Worker{AttemptID: "A"}, 0, Decision{Action: Nothing}},
		{"created;claimed by=A;released by=A", Worker{AttemptID: "A"}, 0, Decision{Action: Nothing}},
		{"created;claimed by=A;claimed by=B over=A", Worker{AttemptID: "B"}, 0, Decision{Action: GiveUp}},
		{"created;claimed by=A;claimed by=B over=A", Worker{AttemptID: "B", SafeRetries: -1}, 0, Decision{Action: GiveUp}},
		{"created;claimed by=A;claimed by=B over=A", Worker{AttemptID: "B", SafeRetries: 1}, 0, Decision{Action: Run}},
		{"created;claimed by=A;claimed by=B over=A;claimed by=C over=B", Worker{AttemptID: "C", SafeRetries: 1}, 0, Decision{Action: GiveUp}},
		{"created;claimed by=A;claimed by=B over=A;failed by=B;reopened;claimed by=C", Worker{AttemptID: "C"}, 0, Decision{Action: Run}},
		{"created;claimed by=A;released by=A;claimed by=B", Worker{AttemptID: "B"}, 0, Decision{Action: Run}},
		// Recovery.
		{"created;claimed by=A;progress by=A commit=1", Worker{AttemptID: "A"}, 0, Decision{Action: Run}},
		{"created;claimed by=A;progress by=A commit=1;claimed by=B over=A", Worker{AttemptID: "B"}, 0,
			Decision{Action: Recover, Commit: commit1, EndsRound: true}},
		{"created;claimed by=A;progress by=A commit=1;claimed by=B over=A;claimed by=C over=B", Worker{AttemptID: "C"}, 0,
			Decision{Action: Recover, Commit: commit1, EndsRound: true}},
		{"created;claimed by=A;progress by=A commit=1;claimed by=B over=A", Worker{AttemptID: "B", Checked: commit1, SafeRetries: 1}, 0, Decision{Action: Run}},
		{"created;claimed by=A;progress by=A commit=1;claimed by=B over=A", Worker{AttemptID: "B", Checked: commit1}, 0, Decision{Action: GiveUp}},
		{"created;claimed by=A;progress by=A commit=1;claimed by=B over=A;progress by=B commit=2", Worker{AttemptID: "B"}, 0, Decision{Action: GiveUp}},
		{"created;claimed by=A;progress by=A commit=1;progress by=A;claimed by=B over=A", Worker{AttemptID: "B"}, 0,
			Decision{Action: Recover, Commit: commit1, EndsRound: true}},
		{"created;claimed by=A;progress by=A commit=1;claimed by=B over=A;released by=B;claimed by=C", Worker{AttemptID: "C"}, 0,
			Decision{Action: Recover, Commit: commit1, EndsRound: true}},
		{"created;claimed by=A;progress by=A commit=1;claimed by=B over=A;failed by=B;reopened;claimed by=C", Worker{AttemptID: "C"}, 0,
			Decision{Action: Recover, Commit: commit1}},
		{"created;claimed by=A;progress by=A commit=1;claimed by=B over=A;done by=B commit=1;reopened;claimed by=C", Worker{AttemptID: "C"}, 0, Decision{Action: Run}},
		{"created;claimed by=B", Worker{AttemptID: "B", Checked: commit1}, 0, Decision{Action: Run}},
		{"created;claimed by=A;progress by=A commit=1;released by=A;claimed by=B", Worker{AttemptID: "B"}, 0, Decision{Action: Run}},
		{"created;claimed by=A;progress by=A commit=1;blocked by=A;reopened;claimed by=B", Worker{AttemptID: "B"}, 0, Decision{Action: Run}},
		{"created;claimed by=A;progress by=A commit=1;canceled;reopened;claimed by=B", Worker{AttemptID: "B"}, 0,
			Decision{Action: Recover, Commit: commit1}},
		{"created;claimed by=A;progress by=A commit=1;canceled;reopened;assigned to=bus-dev;claimed by=B", Worker{AttemptID: "B"}, 0,
			Decision{Action: Recover, Commit: commit1}},
		{"created;claimed by=A;progress by=A commit=1;assigned to=bus-dev;claimed by=B", Worker{AttemptID: "B"}, 0,
			Decision{Action: Recover, Commit: commit1, EndsRound: true}},
	} {
		t.Run(tt.log, func(t *testing.T) {
			t.Parallel()
			var s State
			apply(t, &s, tt.log)
			w := tt.worker
			if w.Recipient == "" {
				w.Recipient = "bus-dev"
			}
			got := s.Decide(w, tt.quiet)
			if got.Reason == "" || strings.HasSuffix(got.Reason, " ") {
				t.Errorf("reason %q", got.Reason)
			}
			got.Reason = ""
			if got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// A worktree that an attempt has left is continued, unless a user names another branch.
func TestWorktreeOfAnAttemptIsContinued(t *testing.T) {
	t.Parallel()
	for branch, want := range map[string]Branch{"": {"task/x", true, "main", "x", true}, "task/x": {"task/x", false, "main", "x", true}, "other": {"other", false, "main", "", false}} {
		var s State
		for n, e := range []Event{
			{Name: Created, Payload: Payload{Recipient: "dev"}},
			{Name: Claimed, Payload: Payload{AttemptID: "A", WorkerID: "w"}},
			{Name: Blocked, Payload: Payload{AttemptID: "A", Branch: "task/x", CreateBranch: true, BaseBranch: "main", WorktreeID: "x", ReuseWorktree: true}},
			{Name: Reopened, Payload: Payload{Branch: branch}},
		} {
			e.ID, e.WorkRef = eventID(n+1), "busdk#1.1"
			if got := s.Apply(e); !got.Applied() {
				t.Fatalf("%+v", got)
			}
		}
		if s.Branch != want {
			t.Errorf("reopened with branch %q: %+v, want %+v", branch, s.Branch, want)
		}
	}
}
