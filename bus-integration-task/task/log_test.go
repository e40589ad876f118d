package task

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	commit1 = "1111111111111111111111111111111111111111"
	commit2 = "2222222222222222222222222222222222222222"
)

// names are the words of event for names of events.
var names = map[string]string{
	"created": Created, "approved": Approved, "assigned": Assigned, "reopened": Reopened, "claimed": Claimed,
	"progress": Progress, "released": Released, "message": Message, "requested": ApprovalRequested, "answered": ApprovalAnswered,
	"done": Done, "blocked": Blocked, "failed": Failed, "canceled": Canceled, "closed": Closed,
}

func eventID(n int) string { return fmt.Sprintf("evt_%019d", n) }

// event reads an event from words, such as "claimed by=A over=B".
func event(t *testing.T, n int, text string) Event {
	t.Helper()
	words := strings.Fields(text)
	e := Event{ID: eventID(n), Name: names[words[0]], Time: time.Unix(int64(n), 0)}
	e.WorkRef = "busdk#1.1"
	if e.Name == Created {
		e.Recipient = "bus-dev"
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "by":
			e.AttemptID, e.WorkerID = value, "worker-"+value
		case "attempt":
			e.AttemptID = value
		case "worker":
			e.WorkerID = value
		case "over":
			e.Supersedes = value
		case "to":
			e.Recipient = value
		case "status":
			e.Status = value
		case "commit":
			e.Commit = map[string]string{"1": commit1, "2": commit2}[value]
		case "approval":
			e.ApprovalID = value
		case "decision":
			e.Decision = value
		case "text":
			e.Text = value
		case "thread":
			e.ThreadID = value
		case "branch":
			e.Branch = value
		case "delivered":
			e.DeliveredID = "evt_" + strings.Repeat("0", 19-len(value)) + value
		case "lease":
			fmt.Sscan(value, &e.LeaseSeconds)
		default:
			t.Fatalf("word %q of %q", word, text)
		}
	}
	return e
}

// log reads one event from each part between semicolons.
func log(t *testing.T, text string) (events []Event) {
	t.Helper()
	for part := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(part) != "" {
			events = append(events, event(t, len(events)+1, part))
		}
	}
	return events
}

func apply(t *testing.T, s *State, text string) (last Change) {
	t.Helper()
	for _, e := range log(t, text) {
		last = s.Apply(e)
	}
	return last
}
