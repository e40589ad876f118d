package worker_test

import (
	"context"
	"strings"
	"testing"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/worker/backend"
)

// A session is resumed by a worker that has the folder with its state. Another one begins a
// new session, and the task does not fail.
func TestSessionIsResumedWhereItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		moved, resumed bool
		reopened       task.Payload
	}{
		"the same folder":                   {resumed: true},
		"another folder":                    {moved: true},
		"the user names the thread again":   {resumed: true, reopened: task.Payload{ThreadID: "thread-1"}},
		"the user names one that is moved":  {moved: true, reopened: task.Payload{ThreadID: "thread-1"}},
		"the user names a thread elsewhere": {moved: true, resumed: true, reopened: task.Payload{ThreadID: "thread-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.settings.CodexStateRoot = t.TempDir()
			create(s.log, "bus#1.1")
			blocked := func(context.Context, backend.Attempt, backend.Listener) string { return report(true) }
			first := s.run(blocked, ended)
			if first.Thread.ID != "thread-1" || first.Thread.Runtime != "stub" || first.Thread.Place == "" {
				t.Fatalf("%+v", first)
			}
			if c.moved {
				s.settings.CodexStateRoot = t.TempDir()
			}
			c.reopened.WorkRef, c.reopened.Text = "bus#1.1", "continue"
			s.log.post(task.Reopened, c.reopened)
			second := s.run(blocked, func(state task.State) bool { return state.Round == 2 && state.Status.Ended() })
			given, want := s.given[1], ""
			if c.resumed {
				want = "thread-1"
				if c.reopened.ThreadID != "" {
					want = c.reopened.ThreadID
				}
			}
			if given.ThreadID != want || (given.ThreadRuntime == "stub") != (want == "thread-1") {
				t.Errorf("thread %q of %q, want %q", given.ThreadID, given.ThreadRuntime, want)
			}
			if second.Status != task.StatusBlocked || (second.Thread.Place == first.Thread.Place) == c.moved {
				t.Errorf("%+v, then %+v", first.Thread, second)
			}
			noticed := false
			_ = s.log.Read(t.Context(), "bus#1.1", "", func(e task.Event) error {
				noticed = noticed || strings.Contains(e.Text, "is not in the state folder of this worker")
				return nil
			})
			if noticed == c.resumed {
				t.Errorf("reported that the session is elsewhere: %v", noticed)
			}
		})
	}
}
