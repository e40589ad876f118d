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

	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session/control"
)

// A session survives the commands and can be resumed after its background process was
// killed. Hooks receive all events.
func TestSessionCommands(t *testing.T) {
	t.Parallel()
	eachSessionCLI(t, func(t *testing.T, cli sessionCLI) {
		reply := func(text string) modeltest.Reply { return modeltest.Reply{modeltest.Text{text}, turnUsage} }
		w := cli.setup(t, modeltest.Replies(reply("noted"), reply("it was 42")), nil)
		hooked := filepath.Join(t.TempDir(), "hooked")
		w.mustExec("", append([]string{"session", "start", "--agent", w.agent, "--model", w.modelID, "--name", "one", "--hook-file", hooked}, w.codexArgs()...)...)
		t.Cleanup(func() {
			cmd, _, _ := w.start(context.Background(), "", "session", "stop", "one") // if the test failed
			_ = cmd.Wait()
		})
		if got := w.mustExec("", "session", "send", "one", "remember 42"); got != "noted\n" {
			t.Errorf("answered %q", got)
		}
		before := w.showSession(t)
		if before.State != "ready" || !before.Running || before.NativeID == "" {
			t.Errorf("session show: %+v", before)
		}
		w.killOwner(t, before)
		w.mustExec("", "session", "resume", "one")
		if got := w.mustExec("", "session", "send", "one", "what was it?"); got != "it was 42\n" {
			t.Errorf("answered %q", got)
		}
		if after := w.showSession(t); after.PID == before.PID || after.NativeID != before.NativeID {
			t.Errorf("session show: %+v, before %+v", after, before)
		}
		w.mustExec("", "session", "stop", "one", "--reason", "done")
		w.checkProcesses()
		if got := strings.Join(conversation(w.wantRequests(2)[1]), "\n"); !strings.HasSuffix(got, "user: remember 42\nassistant: noted\nuser: what was it?") {
			t.Errorf("conversation:\n%s", got)
		}
		text, err := os.ReadFile(hooked)
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
		want := "SessionStart started, OnMessage remember 42, OnError the process that held it has died, SessionStop the process that held it has died, " +
			"SessionStart resumed, OnMessage what was it?, SessionStop done"
		if got := strings.Join(events, ", "); got != want {
			t.Errorf("the hooks received %s", got)
		}
	})
}

// A session that crashed before its first turn says that it cannot be resumed.
func TestSessionCrashesBeforeItsFirstTurn(t *testing.T) {
	t.Parallel()
	eachSessionCLI(t, func(t *testing.T, cli sessionCLI) {
		w := cli.setup(t, modeltest.Replies(), nil)
		w.mustExec("", append([]string{"session", "start", "--agent", w.agent, "--model", w.modelID, "--name", "one"}, w.codexArgs()...)...)
		t.Cleanup(func() {
			cmd, _, _ := w.start(context.Background(), "", "session", "stop", "one")
			_ = cmd.Wait()
		})
		w.killOwner(t, w.showSession(t))
		for _, command := range []string{"send", "resume"} {
			cmd, _, stderr := w.start(t.Context(), "", "session", command, "one", "hi")
			if err := cmd.Wait(); err == nil || !strings.Contains(stderr.String(), "crashed before its first turn; it cannot be resumed") {
				t.Errorf("session %s: %v, %s", command, err, stderr)
			}
		}
		w.mustExec("", "session", "stop", "one")
	})
}

// killOwner kills the background process of the session.
func (w *fixture) killOwner(t *testing.T, s sessionInfo) {
	t.Helper()
	if err := syscall.Kill(s.OwnerPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the session has crashed", func() (sessionInfo, bool) {
		now := w.showSession(t)
		return now, now.State == "crashed" && !now.Running
	})
}

// sessionInfo is the output of "session show".
type sessionInfo struct {
	State    string
	PID      int
	Running  bool
	OwnerPID int    `json:"owner_pid"`
	NativeID string `json:"native_id"`
}

func (w *fixture) showSession(t *testing.T) (s sessionInfo) {
	t.Helper()
	if err := json.Unmarshal([]byte(w.mustExec("", "session", "show", "one", "--format", "json")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}
