package control_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// crashed saves the entry of a session whose process was killed.
func crashed(t *testing.T, b *bench, change func(*control.Entry)) control.Entry {
	t.Helper()
	dead, pid := deadProcess(t)
	e := control.Entry{
		SessionID: "0a0b0c0d", Name: "one", NativeID: "native", Folder: "0a0b0c0d", State: session.StateReady, Owner: dead, OwnerPID: pid,
		Settings: control.Settings{Runtime: "talker", Workdir: b.workdir}, Started: time.Now(), Ready: time.Now(),
	}
	if change != nil {
		change(&e)
	}
	save(t, b.Store, e)
	return e
}

// The first caller that finds a crash notifies the hooks, once.
func TestCrashIsReportedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "hooked")
	crashed(t, b, func(e *control.Entry) { e.Hooks = []control.SinkSpec{{File: file}} })
	c := &control.Client{Store: b.Store}
	for range 2 {
		c.ReportCrashes(t.Context(), b.Runner.Environ, nil, func(line string) { t.Error(line) })
		if _, err := b.ListSessions(t.Context(), control.Filter{}); err != nil {
			t.Error(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for line := range strings.Lines(string(text)) {
		var p control.Payload
		if err := json.Unmarshal([]byte(line), &p); err != nil || p.SessionID != "0a0b0c0d" || p.Workdir != b.workdir {
			t.Errorf("%s: %v", line, err)
		}
		events = append(events, string(p.Event)+" "+p.Data["message"]+" "+p.Data["kind"])
	}
	const why = "the process that held it has died"
	if got, want := strings.Join(events, ", "), "OnError "+why+" agent, SessionStop "+why+" "; got != want {
		t.Errorf("the hook received %s, want %s", got, want)
	}
	if e, err := b.Store.Find("one"); err != nil || e.State != session.StateCrashed || e.Reason != why {
		t.Errorf("%+v, %v", e, err)
	}
}

// A Manager notifies its own hooks of the crashes that it finds; a session that never
// started does not stop.
func TestManagerReportsCrashes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	crashed(t, b, func(e *control.Entry) { e.State, e.Ready = session.StateStarting, time.Time{} })
	for range 2 {
		if _, err := b.ListSessions(t.Context(), control.Filter{}); err != nil {
			t.Error(err)
		}
	}
	if err := b.Hooks.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.events) != 1 || b.events[0].Event != control.OnError {
		t.Errorf("got %+v", b.events)
	}
}

// A session that crashed before its first turn has nothing to resume, says so, and does
// not keep its name.
func TestCrashBeforeTheFirstTurn(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*control.Entry){
		"no message":   func(e *control.Entry) { e.Fresh = true },
		"no native ID": func(e *control.Entry) { e.NativeID = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			e := crashed(t, b, change)
			c := &control.Client{Store: b.Store}
			const want = "crashed before its first turn; it cannot be resumed"
			if _, err := c.Send(t.Context(), e, control.Message{Text: "hi"}); !errors.Is(err, control.ErrNotRunning) || !strings.Contains(err.Error(), want) {
				t.Errorf("send: %v", err)
			}
			if _, err := c.Resume(t.Context(), e, control.ResumeOptions{}); !errors.Is(err, control.ErrNotResumable) || !strings.Contains(err.Error(), want) {
				t.Errorf("resume: %v", err)
			}
			if err := b.Resume(t.Context(), e.Handle()); !errors.Is(err, control.ErrNotResumable) {
				t.Errorf("resume by a manager: %v", err)
			}
			b.start(control.StartOptions{Name: "one"})
		})
	}
}

// A running session whose entry is damaged is listed, keeps its name, and can be
// stopped, which repairs the entry.
func TestDamagedEntryOfARunningSession(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"empty": "", "no JSON": "{", "no entry": "{}", "another session": `{"version":2,"session_id":"other"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _, c, e := serve(t)
			files, err := filepath.Glob(filepath.Join(b.Store.Dir(), "*.json"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			list, problems, err := b.Store.List(control.Filter{})
			if err != nil || len(problems) != 1 || len(list) != 1 || list[0].State != session.StateDamaged || list[0].SessionID != e.SessionID {
				t.Errorf("%+v, %v, %v", list, problems, err)
			}
			if _, err := b.Start(t.Context(), control.StartOptions{Name: "one", Settings: control.Settings{Runtime: "talker", Workdir: b.workdir}}); !errors.Is(err, control.ErrNameTaken) {
				t.Errorf("the name was given away: %v", err)
			}
			found, err := b.Store.Find("one")
			if err != nil {
				t.Fatal(err)
			}
			if st, err := c.Show(t.Context(), found); err != nil || st.State != session.StateDamaged || !st.Running {
				t.Errorf("%+v, %v", st, err)
			}
			if err := c.Stop(t.Context(), found, "done"); err != nil {
				t.Error(err)
			}
			if e, err := b.Store.Find("one"); err != nil || e.State != session.StateStopped || e.Reason != "done" {
				t.Errorf("%+v, %v", e, err)
			}
		})
	}
}

// The same holds while the process that holds the session does not answer. The client
// names it.
func TestDamagedEntryOfASilentSession(t *testing.T) {
	t.Parallel()
	b, _, c, e := serve(t)
	files, err := filepath.Glob(filepath.Join(b.Store.Dir(), "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := errors.Join(os.WriteFile(files[0], nil, 0o600), os.Remove(b.Store.Socket(e))); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Start(t.Context(), control.StartOptions{Name: "one", Settings: control.Settings{Runtime: "talker", Workdir: b.workdir}}); !errors.Is(err, control.ErrNameTaken) {
		t.Errorf("the name was given away: %v", err)
	}
	found, err := b.Store.Find("one")
	if err != nil || found.SessionID != e.SessionID || found.State != session.StateDamaged || found.Started.IsZero() || found.OwnerPID != os.Getpid() {
		t.Errorf("%+v, %v", found, err)
	}
	if err := c.Stop(t.Context(), found, "done"); !errors.Is(err, control.ErrUnreachable) {
		t.Errorf("stopped: %v", err)
	}
}

// A client that waits for an approval request does not wait for ever: a session that is
// ready and has no message queued will not make one.
func TestWatchUntilWaitingEndsWhenReady(t *testing.T) {
	t.Parallel()
	_, _, c, e := serve(t)
	if _, err := c.Send(t.Context(), e, control.Message{Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	var answers int
	w := control.Watcher{Record: func(r *control.LogRecord) error {
		if r.Ended != nil {
			answers++
		}
		return nil
	}}
	if err := c.Watch(t.Context(), e, control.WatchOptions{Last: -1, Until: session.StateWaiting}, w); err != nil || answers != 1 {
		t.Errorf("%d answers, %v", answers, err)
	}
}
