package control_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

func equal(a, b control.Settings) bool { return reflect.DeepEqual(a, b) }

func background(b *bench) *control.Client {
	return &control.Client{Store: b.Store, Host: control.Program{Path: filepath.Join(b.bin, "host"), Args: []string{"host"}, Environ: b.Runner.Environ}}
}

// TestBackground starts a session in another process, stops it, and resumes it by
// another program with the same settings.
func TestBackground(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	c := background(b)
	var reports []control.Report
	c.Report = func(r control.Report) { reports = append(reports, r) }
	opts := control.StartOptions{
		Name: "one", Env: map[string]string{"MINE": "1", "GT_ROLE": "witness"}, InitialPrompt: "hello",
		Settings: control.Settings{Runtime: "talker", Workdir: b.workdir, Model: "m", TurnTimeout: time.Minute},
	}
	e, err := c.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop(t.Context(), e, "") }) // unless it was
	if e.Name != "one" || e.Role != "witness" || e.Owner == process.Self() || !e.OwnerEnds || !e.Served() || e.TurnTimeout != time.Minute {
		t.Errorf("%+v", e)
	}
	if len(reports) != 1 || reports[0].Runtime != "talker" || reports[0].Model != "m" {
		t.Errorf("%+v", reports)
	}
	if result, err := c.Ask(t.Context(), e, control.Message{Text: "env MINE"}, control.Watcher{}); err != nil || result.Text != "MINE=1" {
		t.Errorf("%+v, %v", result, err)
	}
	if _, err := c.Ask(t.Context(), e, control.Message{Text: "ask", TurnTimeout: 10 * time.Millisecond}, control.Watcher{}); !errors.Is(err, agent.ErrTimeout) {
		t.Errorf("a turn that takes too long: %v", err)
	}
	if _, err := c.Start(t.Context(), control.StartOptions{Name: "one", Settings: opts.Settings}); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("a second one of that name: %v", err)
	}
	if err := c.Stop(t.Context(), e, "done"); err != nil {
		t.Fatal(err)
	}
	if process.LifeOf(e.Owner) == process.Alive {
		t.Error("the process that held it is alive")
	}
	// A program resumes what the command line may have started.
	h := control.SessionHandle{SessionID: e.SessionID}
	if err := b.Resume(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	now := b.until(h, session.StateReady)
	if now.Name != "one" || !equal(now.Settings, e.Settings) || now.Role != "witness" {
		t.Errorf("%+v, before %+v", now, e)
	}
	if got := b.ask(h, "env MINE"); got != "MINE=" {
		t.Error(got)
	}
}

// What cannot be started leaves nothing, and the reason arrives.
func TestBackgroundThatFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, c := range map[string]struct {
		host     string
		settings control.Settings
		want     error
	}{
		"an unknown runtime": {"host", control.Settings{Runtime: "stranger", Workdir: b.workdir}, agent.ErrUsage},
		"a relative workdir": {"host", control.Settings{Runtime: "talker", Workdir: "."}, agent.ErrUsage},
		"an unusable host":   {"hook", control.Settings{Runtime: "talker", Workdir: b.workdir}, agent.ErrAgent},
	} {
		client := background(b)
		client.Host.Args = []string{c.host}
		if _, err := client.Start(t.Context(), control.StartOptions{Settings: c.settings}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, _, err := b.Store.List(control.Filter{}); len(list) > 0 || err != nil {
		t.Errorf("left are %+v, %v", list, err)
	}
	if left, err := os.ReadDir(b.Store.Dir()); err != nil || len(left) != 1 { // the lock
		t.Errorf("left are %v, %v", left, err)
	}
}

// Of the served sessions that have ended a hundred are remembered.
func TestEndedSessionsAreForgotten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Serve = true
	at := time.Now().Add(-time.Hour)
	for i := range 105 {
		save(t, b.Store, control.Entry{SessionID: fmt.Sprintf("%08x", i), Folder: fmt.Sprintf("%08x", i), State: session.StateStopped, Started: at.Add(time.Duration(i))})
	}
	save(t, b.Store, control.Entry{SessionID: "not served", State: session.StateStopped, Started: at})
	b.start(control.StartOptions{})
	list, _, err := b.Store.List(control.Filter{})
	if err != nil || len(list) != 102 || list[0].State != session.StateReady || list[101].SessionID != "not served" && list[100].SessionID != "not served" {
		t.Errorf("%d are remembered, %v", len(list), err)
	}
	if _, err := b.Store.Get("00000000"); !errors.Is(err, control.ErrUnknown) {
		t.Error(err)
	}
}
