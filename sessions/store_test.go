package sessions_test

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
	"github.com/busdk/bus-agent/sessions"
)

func newStore(t *testing.T) *sessions.Store {
	return sessions.NewStore(filepath.Join(t.TempDir(), "a", "sessions"))
}

func save(t *testing.T, s *sessions.Store, e sessions.Entry) {
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
	if list, problems, err := s.List(sessions.Filter{}); len(list)+len(problems) > 0 || err != nil {
		t.Error(list, problems, err)
	}
	begun := time.Now().UTC().Round(0)
	for i, id := range []string{"a", "A", "../a", strings.Repeat("x", 500), "gt-1"} {
		save(t, s, sessions.Entry{SessionID: id, NativeID: "n" + fmt.Sprint(i/2), Runtime: "talker:local", WorkDir: "/w" + fmt.Sprint(i), State: sessions.StateStopped, Started: begun.Add(time.Duration(i) * time.Second)})
	}
	for _, id := range []string{"", strings.Repeat("x", 600)} {
		if err := s.Save(t.Context(), sessions.Entry{SessionID: id}); !errors.Is(err, agent.ErrUsage) {
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
		filter sessions.Filter
		want   string
	}{
		{sessions.Filter{}, "gt-1 xxxx ../a A a"},
		{sessions.Filter{WorkDir: "/w1/"}, "A"},
		{sessions.Filter{Runtime: "talker", State: sessions.StateStopped, WorkDir: "/w0"}, "a"},
		{sessions.Filter{Runtime: "talker:local", WorkDir: "/w0"}, "a"},
		{sessions.Filter{Runtime: "talk"}, ""},
		{sessions.Filter{State: sessions.StateReady}, ""},
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
	if _, err := s.Get("nobody"); !errors.Is(err, sessions.ErrUnknown) {
		t.Error(err)
	}
	if err := s.Remove(t.Context(), "../a"); err != nil {
		t.Error(err)
	}
	if err := s.Remove(t.Context(), "../a"); !errors.Is(err, sessions.ErrUnknown) {
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
		entry   sessions.Entry
		want    sessions.State
		running bool
		unknown bool
	}{
		"alive":          {sessions.Entry{State: sessions.StateReady, Process: process.Self(), Owner: process.Self()}, sessions.StateReady, true, false},
		"dead":           {sessions.Entry{State: sessions.StateRunning, PID: pid, Process: dead, Owner: process.Self()}, sessions.StateCrashed, false, false},
		"PID of another": {sessions.Entry{State: sessions.StateReady, PID: os.Getpid(), Process: reused}, sessions.StateCrashed, false, false},
		"owner dead":     {sessions.Entry{State: sessions.StateReady, Process: process.Self(), Owner: dead}, sessions.StateCrashed, true, false},
		"never started":  {sessions.Entry{State: sessions.StateStarting, Owner: dead}, sessions.StateCrashed, false, false},
		"starting":       {sessions.Entry{State: sessions.StateStarting, Owner: process.Self()}, sessions.StateStarting, false, false},
		"stopped":        {sessions.Entry{State: sessions.StateStopped, Process: process.Self()}, sessions.StateStopped, false, false},
		"elsewhere":      {sessions.Entry{State: sessions.StateReady, Process: elsewhere, Host: "other"}, sessions.StateReady, false, true},
		"before boot":    {sessions.Entry{State: sessions.StateReady, Process: elsewhere, Host: host}, sessions.StateCrashed, false, false},
	} {
		c.entry.SessionID = id
		save(t, s, c.entry)
		e, err := s.Get(id)
		if err != nil || e.State != c.want || (e.State == sessions.StateCrashed) == (e.Reason == "") {
			t.Errorf("%s: %+v, %v", id, e, err)
		}
		if running, err := e.Running(); running != c.running || (err != nil) != c.unknown {
			t.Errorf("%s runs: %t, %v", id, running, err)
		}
		removed := s.Remove(t.Context(), id)
		if inUse := c.running || c.want == sessions.StateStarting || c.unknown; errors.Is(removed, sessions.ErrRunning) != inUse {
			t.Errorf("%s is removed: %v", id, removed)
		}
	}
}

func TestFilesThatCannotBeUsedAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	texts := map[string]string{
		"newer":   `{"version":2,"session_id":"newer","everything":"new"}`,
		"broken":  `{"version":1,`,
		"nobody":  `{"version":1}`,
		"another": `{"version":1,"session_id":"not this"}`,
		"long":    `{"version":1,"session_id":"long","reason":"` + strings.Repeat("x", 70<<10) + `"}`,
	}
	paths := map[string]string{}
	for id, text := range texts {
		before, _ := filepath.Glob(filepath.Join(s.Dir(), "*.json"))
		save(t, s, sessions.Entry{SessionID: id, State: sessions.StateStopped})
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
	list, problems, err := s.List(sessions.Filter{})
	if len(list) > 0 || len(problems) != len(texts) || err != nil {
		t.Errorf("%+v, %v, %v", list, problems, err)
	}
	for id := range texts {
		if id == "another" {
			continue
		}
		if err := s.Save(t.Context(), sessions.Entry{SessionID: id}); err == nil {
			t.Errorf("%s is written over", id)
		}
		if err := s.Remove(t.Context(), id); err == nil {
			t.Errorf("%s is removed", id)
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
	if err := sessions.NewStore(dir).Save(t.Context(), sessions.Entry{SessionID: "a"}); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Error(err)
	}
	if err := sessions.NewStore("here").Save(t.Context(), sessions.Entry{SessionID: "a"}); err == nil {
		t.Error("a relative folder is used")
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	dead, _ := deadProcess(t)
	save(t, s, sessions.Entry{SessionID: "old", State: sessions.StateStopped, Started: at, Ended: at})
	save(t, s, sessions.Entry{SessionID: "ended late", State: sessions.StateStopped, Started: at, Ended: at.Add(2 * time.Hour)})
	save(t, s, sessions.Entry{SessionID: "crashed", State: sessions.StateReady, Started: at, Process: dead})
	save(t, s, sessions.Entry{SessionID: "running", State: sessions.StateReady, Started: at, Process: process.Self()})
	removed, err := s.Prune(t.Context(), at.Add(time.Hour))
	left, _, _ := s.List(sessions.Filter{})
	if err != nil || len(removed) != 2 || len(left) != 2 || left[0].SessionID != "ended late" || left[1].SessionID != "running" {
		t.Errorf("removed %+v, left %+v, %v", removed, left, err)
	}
}

// Every change counts, whoever makes it, and every look sees whole entries.
func TestManyChangeTheStore(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	save(t, s, sessions.Entry{SessionID: "one", State: sessions.StateStopped, Reason: strings.Repeat("r", 10000)})
	stop := make(chan struct{})
	var looking, changing sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			list, problems, err := sessions.NewStore(s.Dir()).List(sessions.Filter{})
			if len(list) != 1 || len(problems) > 0 || err != nil {
				t.Error(len(list), problems, err)
				return
			}
		}
	})
	for range 4 {
		changing.Go(func() {
			own := sessions.NewStore(s.Dir()) // as another process has one
			for range 5 {
				if err := own.Update(t.Context(), "one", func(e *sessions.Entry) error { e.PID++; return nil }); err != nil {
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
	if err := s.Update(t.Context(), "one", func(e *sessions.Entry) error { e.PID = 0; return refusal }); err != refusal {
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
		if got, err := sessions.DefaultDir(strings.Fields(environ)); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", environ, got, err)
		}
	}
}
