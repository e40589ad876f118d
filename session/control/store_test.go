package control_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

func newStore(t *testing.T) *control.Store {
	return control.NewStore(filepath.Join(t.TempDir(), "a", "sessions"))
}

func save(t *testing.T, s *control.Store, e control.Entry) {
	t.Helper()
	if err := s.Save(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

// deadProcess returns what identified a process that has ended, and its PID.
func deadProcess(t *testing.T) (string, int) {
	t.Helper()
	c := exec.Command("/bin/cat")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	identity, err := process.Identify(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	return identity, c.Process.Pid
}

func TestStoreKeepsEntriesPrivate(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	if list, problems, err := s.List(control.Filter{}); len(list)+len(problems) > 0 || err != nil {
		t.Error(list, problems, err)
	}
	begun := time.Now().UTC().Round(0)
	for i, id := range []string{"a", "A", "../a", strings.Repeat("x", 500), "gt-1"} {
		save(t, s, control.Entry{SessionID: id, NativeID: "n" + fmt.Sprint(i/2), Settings: control.Settings{Runtime: "talker:local", Workdir: "/w" + fmt.Sprint(i)}, State: session.StateStopped, Started: begun.Add(time.Duration(i) * time.Second)})
	}
	for _, id := range []string{"", strings.Repeat("x", 600)} {
		if err := s.Save(t.Context(), control.Entry{SessionID: id}); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if info, err := os.Stat(s.Dir()); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info, err)
	}
	files, err := os.ReadDir(s.Dir())
	if err != nil || len(files) != 6 { // and the lock
		t.Error(files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode() != 0o600 {
			t.Error(info, err)
		}
	}
	for _, c := range []struct {
		filter control.Filter
		want   string
	}{
		{control.Filter{}, "gt-1 xxxx ../a A a"},
		{control.Filter{Workdir: "/w1/"}, "A"},
		{control.Filter{Runtime: "talker", State: session.StateStopped, Workdir: "/w0"}, "a"},
		{control.Filter{Runtime: "talker:local", Workdir: "/w0"}, "a"},
		{control.Filter{Runtime: "talk"}, ""},
		{control.Filter{State: session.StateReady}, ""},
	} {
		list, _, err := s.List(c.filter)
		var ids []string
		for _, e := range list {
			ids = append(ids, e.SessionID[:min(len(e.SessionID), 4)])
		}
		if got := strings.Join(ids, " "); got != c.want || err != nil {
			t.Errorf("%+v: %q, %v, want %q", c.filter, got, err, c.want)
		}
	}
	if e, err := s.Get("n2"); err != nil || e.SessionID != "gt-1" {
		t.Error(e, err)
	}
	if _, err := s.Get("n0"); !errors.Is(err, agent.ErrUsage) {
		t.Errorf("a native ID of two: %v", err)
	}
	if _, err := s.Get("stranger"); !errors.Is(err, control.ErrUnknown) {
		t.Error(err)
	}
}

func TestEntriesOfDeadProcessesAreCrashed(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	dead, pid := deadProcess(t)
	reused := fmt.Sprintf("%s:%d:1", dead[:strings.LastIndex(dead[:strings.LastIndex(dead, ":")], ":")], os.Getpid())
	elsewhere := "other" + dead
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for id, c := range map[string]struct {
		entry   control.Entry
		want    session.State
		running bool
		unknown bool
	}{
		"alive":          {control.Entry{State: session.StateReady, Process: process.Self(), Owner: process.Self()}, session.StateReady, true, false},
		"dead":           {control.Entry{State: session.StateRunning, PID: pid, Process: dead, Owner: process.Self()}, session.StateCrashed, false, false},
		"PID of another": {control.Entry{State: session.StateReady, PID: os.Getpid(), Process: reused}, session.StateCrashed, false, false},
		"owner dead":     {control.Entry{State: session.StateReady, Process: process.Self(), Owner: dead}, session.StateCrashed, true, false},
		"never started":  {control.Entry{State: session.StateStarting, Owner: dead}, session.StateCrashed, false, false},
		"starting":       {control.Entry{State: session.StateStarting, Owner: process.Self()}, session.StateStarting, false, false},
		"stopped":        {control.Entry{State: session.StateStopped, Process: process.Self()}, session.StateStopped, false, false},
		"elsewhere":      {control.Entry{State: session.StateReady, Process: elsewhere, Host: "other"}, session.StateReady, false, true},
		"before boot":    {control.Entry{State: session.StateReady, Process: elsewhere, Host: host}, session.StateCrashed, false, false},
	} {
		c.entry.SessionID = id
		save(t, s, c.entry)
		e, err := s.Get(id)
		if err != nil || e.State != c.want || (e.State == session.StateCrashed) == (e.Reason == "") {
			t.Errorf("%s: %+v, %v", id, e, err)
		}
		if running, err := e.Running(); running != c.running || (err != nil) != c.unknown {
			t.Errorf("%s runs: %t, %v", id, running, err)
		}
		removed, err := s.Prune(t.Context(), time.Now().Add(time.Hour))
		if inUse := c.running || !c.want.Ended(); err != nil || (len(removed) == 0) != inUse {
			t.Errorf("%s is removed: %v, %v", id, removed, err)
		}
		if err := os.RemoveAll(s.Dir()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesThatCannotBeUsedAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	texts := map[string]string{
		"newer":    `{"version":3,"session_id":"newer","everything":"new"}`,
		"broken":   `{"version":1,`,
		"stranger": `{"version":1}`,
		"another":  `{"version":1,"session_id":"not this"}`,
		"long":     `{"version":1,"session_id":"long","reason":"` + strings.Repeat("x", 70<<10) + `"}`,
	}
	paths := map[string]string{}
	for id, text := range texts {
		before, _ := filepath.Glob(filepath.Join(s.Dir(), "*.json"))
		save(t, s, control.Entry{SessionID: id, State: session.StateStopped})
		after, _ := filepath.Glob(filepath.Join(s.Dir(), "*.json"))
		for _, name := range after {
			if !strings.Contains(strings.Join(before, "\n"), name) {
				paths[id] = name
			}
		}
		if err := os.WriteFile(paths[id], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.Dir(), "1.part"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	list, problems, err := s.List(control.Filter{})
	if len(list) > 0 || len(problems) != len(texts) || err != nil {
		t.Errorf("%+v, %v, %v", list, problems, err)
	}
	for id := range texts {
		if id == "another" {
			continue
		}
		if err := s.Save(t.Context(), control.Entry{SessionID: id}); err == nil {
			t.Errorf("%s is written over", id)
		}
		if _, err := s.Get(id); err == nil {
			t.Errorf("%s is read", id)
		}
	}
	if removed, err := s.Prune(t.Context(), time.Now().Add(time.Hour)); len(removed) > 0 || err != nil {
		t.Error(removed, err)
	}
	for id, text := range texts {
		if have, err := os.ReadFile(paths[id]); err != nil || string(have) != text {
			t.Errorf("%s has changed: %v", id, err)
		}
	}
	if _, err := os.Stat(filepath.Join(s.Dir(), "1.part")); err == nil {
		t.Error("what a killed writer has left stays for ever")
	}
}

func TestFolderOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := control.NewStore(dir).Save(t.Context(), control.Entry{SessionID: "a"}); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Error(err)
	}
	if err := control.NewStore("here").Save(t.Context(), control.Entry{SessionID: "a"}); err == nil {
		t.Error("a relative folder is used")
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	dead, _ := deadProcess(t)
	save(t, s, control.Entry{SessionID: "old", State: session.StateStopped, Started: at, Ended: at})
	save(t, s, control.Entry{SessionID: "ended late", State: session.StateStopped, Started: at, Ended: at.Add(2 * time.Hour)})
	save(t, s, control.Entry{SessionID: "crashed", State: session.StateReady, Started: at, Process: dead})
	save(t, s, control.Entry{SessionID: "running", State: session.StateReady, Started: at, Process: process.Self()})
	removed, err := s.Prune(t.Context(), at.Add(time.Hour))
	left, _, _ := s.List(control.Filter{})
	if err != nil || len(removed) != 2 || len(left) != 2 || left[0].SessionID != "ended late" || left[1].SessionID != "running" {
		t.Errorf("removed %+v, left %+v, %v", removed, left, err)
	}
}

// No change of any writer is lost, and every read sees a complete entry.
func TestManyChangeTheStore(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	save(t, s, control.Entry{SessionID: "one", State: session.StateStopped, Reason: strings.Repeat("r", 10000)})
	stop := make(chan struct{})
	var looking, changing sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			list, problems, err := control.NewStore(s.Dir()).List(control.Filter{})
			if len(list) != 1 || len(problems) > 0 || err != nil {
				t.Error(len(list), problems, err)
				return
			}
		}
	})
	for range 4 {
		changing.Go(func() {
			own := control.NewStore(s.Dir()) // as another process has one
			for range 5 {
				if err := own.Update(t.Context(), "one", func(e *control.Entry) error { e.PID++; return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	changing.Wait()
	close(stop)
	looking.Wait()
	if e, err := s.Get("one"); err != nil || e.PID != 20 {
		t.Errorf("%d changes count, %v", e.PID, err)
	}
	refusal := errors.New("no")
	if err := s.Update(t.Context(), "one", func(e *control.Entry) error { e.PID = 0; return refusal }); err != refusal {
		t.Error(err)
	}
	if e, err := s.Get("one"); err != nil || e.PID != 20 {
		t.Errorf("a change that was refused is written: %+v, %v", e, err)
	}
}

func TestDefaultDir(t *testing.T) {
	t.Parallel()
	for environ, want := range map[string]string{
		"XDG_STATE_HOME=/s HOME=/h": "/s/bus-agent/sessions",
		"XDG_STATE_HOME=s HOME=/h":  "/h/.local/state/bus-agent/sessions",
		"HOME=/h":                   "/h/.local/state/bus-agent/sessions",
		"HOME=h":                    "",
		"":                          "",
	} {
		if got, err := control.DefaultDir(strings.Fields(environ)); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", environ, got, err)
		}
	}
}
