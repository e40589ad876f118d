//go:build acceptance

package acceptance

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session/control"
)

// does runs a command that must succeed and returns what it prints. Sessions live
// on after it.
func (w *world) does(args ...string) string {
	w.t.Helper()
	cmd, stdout, stderr := w.start(w.t.Context(), "", args...)
	if err := cmd.Wait(); err != nil {
		w.t.Fatalf("%q: %v\n%s", args, err, stderr)
	}
	return stdout.String()
}

// A session of the commands outlives them and the process that holds it: it is gone
// on with after that was killed. Hooks tell all of it, and nothing is left.
func TestSessionOfCommands(t *testing.T) {
	t.Parallel()
	eachTalker(t, func(t *testing.T, cli talker) {
		reply := func(text string) modeltest.Reply { return modeltest.Reply{modeltest.Text{text}, turnUsage} }
		w := cli.make(t, modeltest.Replies(reply("noted"), reply("it was 42")), nil)
		told := filepath.Join(t.TempDir(), "told")
		w.does(append([]string{"session", "start", "--agent", w.agent, "--model", w.chosen, "--name", "one", "--hook-file", told}, w.fake()...)...)
		t.Cleanup(func() {
			cmd, _, _ := w.start(context.Background(), "", "session", "stop", "one") // unless the test did
			_ = cmd.Wait()
		})
		if got := w.does("session", "send", "one", "remember 42"); got != "noted\n" {
			t.Errorf("answered %q", got)
		}
		before := w.shows(t)
		if before.State != "ready" || !before.Running || before.NativeID == "" {
			t.Errorf("shown as %+v", before)
		}
		w.crash(t, before)
		w.does("session", "resume", "one")
		if got := w.does("session", "send", "one", "what was it?"); got != "it was 42\n" {
			t.Errorf("answered %q", got)
		}
		if after := w.shows(t); after.PID == before.PID || after.NativeID != before.NativeID {
			t.Errorf("shown as %+v, before as %+v", after, before)
		}
		w.does("session", "stop", "one", "--reason", "done")
		w.checkProcesses()
		if got := strings.Join(spoken(w.asked(2)[1]), "\n"); !strings.HasSuffix(got, "user: remember 42\nassistant: noted\nuser: what was it?") {
			t.Errorf("conversation:\n%s", got)
		}
		text, err := os.ReadFile(told)
		if err != nil {
			t.Fatal(err)
		}
		var events []string
		for line := range strings.Lines(string(text)) {
			var p control.Payload
			if err := json.Unmarshal([]byte(line), &p); err != nil {
				t.Fatal(err)
			}
			events = append(events, string(p.Event)+" "+p.Data["message"])
		}
		want := "SessionStart started, OnMessage remember 42, SessionStart resumed, OnMessage what was it?, SessionStop done"
		if got := strings.Join(events, ", "); got != want {
			t.Errorf("hooks were told %s", got)
		}
	})
}

// crash kills the process that holds the session.
func (w *world) crash(t *testing.T, s shownSession) {
	t.Helper()
	if err := syscall.Kill(s.OwnerPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(w.limit); ; time.Sleep(10 * time.Millisecond) {
		now := w.shows(t)
		if now.State == "crashed" && !now.Running {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("shown as %+v", now)
		}
	}
}

// shownSession is what "session show" prints.
type shownSession struct {
	State    string
	PID      int
	Running  bool
	OwnerPID int    `json:"owner_pid"`
	NativeID string `json:"native_id"`
}

func (w *world) shows(t *testing.T) (s shownSession) {
	t.Helper()
	if err := json.Unmarshal([]byte(w.does("session", "show", "one", "--format", "json")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}
