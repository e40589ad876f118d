package control_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
	"github.com/busdk/bus-agent/session/engine"
)

func TestLifeOfASession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.start(control.StartOptions{InitialPrompt: "good morning", Settings: control.Settings{Bead: "gp-1"}, Identity: control.Identity{SessionID: "gt-1", Rig: "green", Role: "polecat", Actor: "green/ivy"}})
	if h.SessionID != "gt-1" || h.Runtime != "talker" || h.Workdir != b.workdir || h.PID == 0 || h.StartedAt.IsZero() || h.ReadyAt.IsZero() {
		t.Errorf("%+v", h)
	}
	if running, err := b.DetectRunning(t.Context(), h); !running || err != nil {
		t.Error(running, err)
	}
	if got := b.ask(h, "hello"); got != "hello" {
		t.Errorf("the answer is %q", got)
	}
	e := b.until(h, session.StateReady)
	if e.NativeID != "native-new" || e.Created.IsZero() {
		t.Errorf("%+v", e)
	}
	b.untilReady(h)
	listed, err := b.ListSessions(t.Context(), control.Filter{Runtime: "talker", Workdir: b.workdir})
	if err != nil || len(listed) != 1 || listed[0] != h {
		t.Errorf("%+v, %v, want %+v", listed, err, h)
	}
	if err := b.Stop(t.Context(), h, "enough"); err != nil {
		t.Fatal(err)
	}
	if e := b.until(h, session.StateStopped); e.Reason != "enough" || e.Ended.IsZero() {
		t.Errorf("%+v", e)
	}
	if running, err := b.DetectRunning(t.Context(), h); running || err != nil {
		t.Error(running, err)
	}
	if syscall.Kill(h.PID, 0) == nil {
		t.Error("the agent lives")
	}
	if err := b.SendMessage(t.Context(), h, control.Message{Text: "x"}); !errors.Is(err, control.ErrNotRunning) {
		t.Error(err)
	}
	if err := b.Stop(t.Context(), h, "again"); err != nil {
		t.Error(err)
	}
	if got := b.hooked(); got != "SessionStart started\nOnMessage good morning\nOnMessage hello\nSessionStop enough" {
		t.Error(got)
	}
	p := b.events[0]
	if p.Runtime != "talker" || p.SessionID != "gt-1" || p.Rig != "green" || p.Role != "polecat" || p.Actor != "green/ivy" || p.Bead != "gp-1" || p.Workdir != b.workdir {
		t.Errorf("%+v", p)
	}
	if len(b.warnings) > 0 {
		t.Errorf("warnings %q", b.warnings)
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.start(control.StartOptions{Identity: control.Identity{Role: "witness"}})
	if err := b.Resume(t.Context(), h); !errors.Is(err, control.ErrRunning) {
		t.Error(err)
	}
	if err := b.Stop(t.Context(), h, ""); err != nil {
		t.Fatal(err)
	}
	created := b.until(h, session.StateStopped).Created
	// By another manager, as by another process, and by its native ID.
	other := newBench(t)
	other.Store = b.Store
	if _, err := other.ResumeWith(t.Context(), control.SessionHandle{SessionID: "native-new"}, control.ResumeOptions{Settings: control.Settings{Runtime: "other"}}, session.Options{}); !errors.Is(err, agent.ErrUsage) {
		t.Error(err)
	}
	if err := other.Resume(t.Context(), control.SessionHandle{SessionID: "native-new"}); err != nil {
		t.Fatal(err)
	}
	e := b.until(h, session.StateReady)
	if e.PID == h.PID || e.NativeID != "native-new" || !e.Created.Equal(created) || e.Workdir != b.workdir || !e.Ended.IsZero() {
		t.Errorf("%+v", e)
	}
	if got := other.ask(h, "env GT_ROLE"); got != "GT_ROLE=witness" {
		t.Error(got)
	}
	if got := other.hooked(); !strings.HasPrefix(got, "SessionStart resumed") {
		t.Error(got)
	}
	if err := b.SendMessage(t.Context(), h, control.Message{Text: "x"}); !errors.Is(err, control.ErrElsewhere) {
		t.Error(err)
	}
	b.untilReady(h)
	if err := b.Stop(t.Context(), h, ""); !errors.Is(err, control.ErrElsewhere) {
		t.Error(err)
	}
}

// The native ID is enough to resume a session. Its age is then unknown.
func TestResumeByNativeID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h, err := b.ResumeWith(t.Context(), control.SessionHandle{Runtime: "talker", SessionID: "abc", Workdir: b.workdir}, control.ResumeOptions{}, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := b.until(h, session.StateReady)
	if e.SessionID != "abc" || e.NativeID != "abc-of-unknown-age" {
		t.Errorf("%+v", e)
	}
}

func TestFailuresLeaveNoEntry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, opts := range map[string]control.StartOptions{
		"a runtime without sessions": {Settings: control.Settings{Runtime: "mute"}},
		"an unknown runtime":         {Settings: control.Settings{Runtime: "stranger"}},
		"an unknown mode":            {Settings: control.Settings{Runtime: "talker", Mode: "x"}},
		"tmux that is not there":     {Settings: control.Settings{Runtime: "talker", Mode: session.ModeTmux}},
		"no workdir":                 {Settings: control.Settings{Runtime: "talker", Workdir: "/nowhere"}},
		"no account":                 {Settings: control.Settings{Runtime: "talker", AccountDir: "/nowhere"}},
		"a long prompt":              {Settings: control.Settings{Runtime: "talker"}, InitialPrompt: strings.Repeat("x", 1001)},
		"no variable":                {Settings: control.Settings{Runtime: "talker"}, Env: map[string]string{"A=B": "x"}},
		"a directory that is absent": {Settings: control.Settings{Runtime: "talker", AddDirs: []string{"/nowhere"}}},
	} {
		if opts.Workdir == "" {
			opts.Workdir = b.workdir
		}
		if _, err := b.Start(t.Context(), opts); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%s: %v", name, err)
		}
		if err := b.Check(t.Context(), opts); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%s, checked: %v", name, err)
		}
	}
	if err := b.Check(t.Context(), control.StartOptions{Settings: control.Settings{Runtime: "talker", Workdir: b.workdir}}); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(b.Store.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of the sessions was made: %v", err)
	}
	// A session that cannot be resumed is as it was.
	h := b.start(control.StartOptions{})
	if err := b.Stop(t.Context(), h, "done"); err != nil {
		t.Fatal(err)
	}
	before := b.until(h, session.StateStopped)
	if _, err := b.ResumeWith(t.Context(), h, control.ResumeOptions{Settings: control.Settings{AddDirs: []string{"/nowhere"}}}, session.Options{}); !errors.Is(err, agent.ErrUsage) {
		t.Error(err)
	}
	if after, err := b.Store.Get(h.SessionID); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("%+v, %v, want %+v", after, err, before)
	}
}

func TestAgentThatDies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.start(control.StartOptions{})
	gate := filepath.Join(b.workdir, "gate")
	if err := b.SendMessage(t.Context(), h, control.Message{Text: "die " + gate}); err != nil {
		t.Fatal(err)
	}
	b.makeFile(gate)
	e := b.until(h, session.StateCrashed)
	for e.Ended.IsZero() { // it was seen dead before its entry said so
		e = b.until(h, session.StateCrashed)
	}
	if !strings.Contains(e.Reason, "exit code 3") || e.Turns != 1 {
		t.Errorf("%+v", e)
	}
	if got := b.hooked(); !strings.Contains(got, "OnMessage die "+gate+"\nOnError talker: during the turn: ") || !strings.Contains(got, "SessionStop exit code 3") {
		t.Error(got)
	}
	if err := b.Resume(t.Context(), h); err != nil {
		t.Error(err)
	}
}

func TestFailedTurnIsReportedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.start(control.StartOptions{InitialPrompt: "fail out of luck"})
	if got := b.ask(h, "hello"); got != "hello" {
		t.Error(got)
	}
	if err := b.Stop(t.Context(), h, ""); err != nil {
		t.Fatal(err)
	}
	if got := b.hooked(); got != "SessionStart started\nOnMessage fail out of luck\nOnError talker: out of luck\nOnMessage hello\nSessionStop " {
		t.Error(got)
	}
}

func TestStateFollowsTheSession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.start(control.StartOptions{})
	gate := filepath.Join(b.workdir, "gate")
	if err := b.SendMessage(t.Context(), h, control.Message{Text: "hold " + gate}); err != nil {
		t.Fatal(err)
	}
	b.until(h, session.StateRunning)
	if ready, err := b.IsReady(t.Context(), h); ready || err != nil {
		t.Error(ready, err)
	}
	// A message waits for its time and no longer.
	if err := b.SendMessage(t.Context(), h, control.Message{Text: "x", Timeout: time.Millisecond}); !errors.Is(err, session.ErrNotDelivered) || !errors.Is(err, agent.ErrTimeout) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.SendMessage(ctx, h, control.Message{Text: "later"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b.makeFile(gate)
	if err := b.SendMessage(t.Context(), h, control.Message{Text: "ask"}); err != nil {
		t.Fatal(err)
	}
	b.until(h, session.StateWaiting)
	s, err := b.Session(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Answer(t.Context(), "1", session.Accept); err != nil {
		t.Fatal(err)
	}
	b.until(h, session.StateReady)
	if err := b.Stop(t.Context(), h, ""); err != nil {
		t.Fatal(err)
	}
	if got := b.hooked(); got != "SessionStart started\nOnMessage hold "+gate+"\nOnError talker: the message was not delivered: it waited for 1ms\nOnMessage later\nOnMessage ask\nSessionStop " {
		t.Error(got)
	}
}

// Hooks are notified in the order in which the agent gets messages and turns end,
// however fast that is and whatever the order was in which messages were sent.
func TestHooksAreNotifiedInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.start(control.StartOptions{})
	gate := filepath.Join(b.workdir, "gate")
	if err := b.SendMessage(t.Context(), h, control.Message{Text: "hold " + gate}); err != nil {
		t.Fatal(err)
	}
	want := "SessionStart started\nOnMessage hold " + gate + "\nOnMessage urgent"
	for i := range 50 {
		text := fmt.Sprintf("message %d", i)
		want += "\nOnMessage "
		if i%3 == 0 {
			want += "fail "
			text = "fail " + text
		}
		want += fmt.Sprintf("message %d", i)
		if i%3 == 0 {
			want += fmt.Sprintf("\nOnError talker: message %d", i)
		}
		if _, err := b.Send(h, control.Message{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Steer(t.Context(), h, control.Message{Text: "urgent"}); err != nil {
		t.Fatal(err)
	}
	b.makeFile(gate)
	if got := b.ask(h, "the last"); got != "the last" {
		t.Error(got)
	}
	if err := b.Stop(t.Context(), h, "done"); err != nil {
		t.Fatal(err)
	}
	if got := b.hooked(); got != want+"\nOnMessage the last\nSessionStop done" {
		t.Errorf("hooks got\n%s\nwant\n%s", got, want)
	}
	if _, err := b.Steer(t.Context(), h, control.Message{Text: "late"}); !errors.Is(err, control.ErrNotRunning) {
		t.Error(err)
	}
}

func TestMessageHasTheDeliveryOfTheSession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := b.start(control.StartOptions{})
	for delivery, want := range map[engine.Delivery]string{
		engine.DeliverRPC: "takes messages by stdin, not by rpc", engine.DeliverTmux: "not by tmux", "pigeon": "not by pigeon",
	} {
		err := b.SendMessage(t.Context(), h, control.Message{Text: "x", Delivery: delivery})
		if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", delivery, err)
		}
	}
	for _, text := range []string{"", "\xff", strings.Repeat("x", 1001)} {
		if err := b.SendMessage(t.Context(), h, control.Message{Text: text}); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := b.SendMessage(t.Context(), h, control.Message{Text: "x", Delivery: engine.DeliverStdin}); err != nil {
		t.Error(err)
	}
}

func TestAgentKnowsItsSession(t *testing.T) {
	t.Parallel()
	account := t.TempDir()
	b := newBench(t, "GT_RIG=green", "GT_ROLE=witness", "BD_ACTOR=x", "GT_SESSION_ID_ENV=OUTER", "OUTER=outer-1", "TALKER_HOME=/old")
	h := b.start(control.StartOptions{Settings: control.Settings{AccountDir: account}, Env: map[string]string{"GT_ROLE": "polecat", "MINE": "1"}, Identity: control.Identity{Actor: "green/ivy"}})
	if h.SessionID != "outer-1" {
		t.Errorf("ID %s", h.SessionID)
	}
	for name, want := range map[string]string{
		"GT_SESSION_ID": "outer-1", "TALKER_SESSION_ID": "outer-1", "GT_SESSION_ID_ENV": "GT_SESSION_ID", "GT_RIG": "green", "GT_ROLE": "polecat",
		"BD_ACTOR": "green/ivy", "GT_WORKDIR": b.workdir, "GT_POLECAT": "", "MINE": "1", "TALKER_HOME": account,
	} {
		if got := b.ask(h, "env "+name); got != name+"="+want {
			t.Errorf("%s, want %q", got, want)
		}
	}
	// A second one does not take the ID of the first, unless it was asked for.
	second := b.start(control.StartOptions{})
	if second.SessionID == "outer-1" || b.ask(second, "env GT_SESSION_ID") != "GT_SESSION_ID="+second.SessionID || b.ask(second, "env TALKER_SESSION_ID") != "TALKER_SESSION_ID="+second.SessionID {
		t.Errorf("ID %s", second.SessionID)
	}
	_, err := b.Start(t.Context(), control.StartOptions{Settings: control.Settings{Runtime: "talker", Workdir: b.workdir}, Identity: control.Identity{SessionID: "outer-1"}})
	if !errors.Is(err, control.ErrRunning) {
		t.Error(err)
	}
}
