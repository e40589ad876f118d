package eventserver

import (
	"slices"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// A reader of all tasks has one filter, on which every event that it asks for is.
func TestFilterOfAllTasksIsOneSubject(t *testing.T) {
	t.Parallel()
	names := []string{"a.b", "bus.task.created", "bus.task.done"}
	filters := filterOf("bus.events", "alice", names, "")
	if len(filters) != 1 {
		t.Fatalf("%q", filters)
	}
	for _, name := range names {
		for _, ref := range []string{"", "bus#1.1"} {
			if subject := subjectOf("bus.events", "alice", name, ref); !server.SubjectsCollide(subject, filters[0]) {
				t.Errorf("%s is not on %s", subject, filters[0])
			}
		}
	}
	if other := subjectOf("bus.events", "bob", "bus.task.created", "bus#1.1"); server.SubjectsCollide(other, filters[0]) {
		t.Errorf("%s of another identity is on %s", other, filters[0])
	}
	if got := filterOf("bus.events", "alice", names, "bus#1.1"); !slices.Equal(got, []string{subjectOf("bus.events", "alice", "", "bus#1.1")}) {
		t.Errorf("one task: %q", got)
	}
	if got := filterOf("bus.events", "alice", names[:1], ""); !slices.Equal(got, []string{subjectOf("bus.events", "alice", "a.b", "")}) {
		t.Errorf("no task: %q", got)
	}
}
