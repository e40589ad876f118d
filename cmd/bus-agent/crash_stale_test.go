//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/statefile"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// The next command finds and ends the processes that the agent of a killed owner has
// left, and the store always has the state of the session.
func TestStaleProcessesOfAKilledOwner(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *supervised, tool *life){
		"stop": func(s *supervised, _ *life) { s.does("session", "stop", "one") },
		"doctor": func(s *supervised, _ *life) {
			owner := strconv.Itoa(s.entry.OwnerPID)
			// The tool executes other programs once it is up.
			listed := regexp.MustCompile(`^process \d+: \w+, of bus-agent ` + owner + ` \(session one\), `)
			if out := s.does("doctor", "--owner", owner); !listed.MatchString(out) {
				s.t.Errorf("doctor says %q", out)
			}
			s.does("doctor", "--sweep", "--owner", owner)
		},
		"resume": func(s *supervised, tool *life) {
			s.does("session", "resume", "one")
			tool.await(s.t) // that of the current agent
			s.does("session", "stop", "one")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCommons(t)
			tool := newLife(t)
			script := descendants["deaf to SIGTERM"]
			s := &supervised{sandbox: newSandbox(t, "claude", "marked\nsh PATH="+quoted(c.tools)+"; export PATH; exec 9>"+quoted(tool.path)+"; "+script+"\nconverse\n")}
			s.does("session", "start", "--agent", "claude", "--name", "one")
			tool.await(t)
			s.does("session", "send", "one", "file "+s.path("there"), "--no-wait")
			s.await("there")
			s.find(t)
			running := testwait.Until(t, "the ID and the state, which are written concurrently", func() (control.Entry, bool) {
				e := s.known(t)
				return e, e.State == session.StateRunning && e.NativeID != ""
			})
			if running.State != session.StateRunning || running.Runtime != "claude" || running.NativeID != "5e551011-0000-4000-8000-000000000001" || running.Workdir != s.path("work") ||
				running.PID == 0 || running.Started.IsZero() || running.Ready.IsZero() || running.Owner != s.entry.Owner {
				t.Errorf("known as %+v", running)
			}
			if process.LifeOf(running.Process) != process.Alive || !strings.Contains(running.Process, ":"+strconv.Itoa(running.PID)+":") {
				t.Errorf("process %d, %q", running.PID, running.Process)
			}
			if err := syscall.Kill(s.entry.OwnerPID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			isGone(t, s.entry.Owner)
			isGone(t, running.Process)
			if e := s.known(t); e.State != session.StateCrashed || e.Reason == "" || e.PID != running.PID {
				t.Errorf("known as %+v", e)
			}
			if !tool.alive() {
				t.Error("the tool has ended by itself")
			}
			end(s, tool)
			if tool.alive() {
				t.Error("the tool lives on")
			}
			s.does("session", "stop", "one")
			if e := s.known(t); e.State != session.StateStopped || e.Ended.IsZero() {
				t.Errorf("known as %+v", e)
			}
		})
	}
}

// find takes the entry of the session.
func (s *supervised) find(t *testing.T) {
	t.Helper()
	var err error
	if s.entry, err = sessionsOf(s.path("home")).Find("one"); err != nil {
		t.Fatal(err)
	}
}

// known returns what library users know of the session.
func (s *supervised) known(t *testing.T) control.Entry {
	t.Helper()
	e, err := sessionsOf(s.path("home")).Get(s.entry.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What is shown of a session says which process its agent is, while it runs and
// afterwards.
func TestSessionShowsItsAgent(t *testing.T) {
	t.Parallel()
	s := startSupervised(t)
	shown := s.shown(t)
	if shown.State != session.StateRunning || !shown.Running || shown.Process != s.children[0] || shown.Started.IsZero() || shown.Ready.IsZero() {
		t.Errorf("shown as %+v", shown)
	}
	if e := s.known(t); e.PID != shown.PID || e.Process != shown.Process {
		t.Errorf("known as %+v", e)
	}
	s.does("session", "stop", "one")
	if now := s.shown(t); now.State != "stopped" || now.Running || now.PID != shown.PID {
		t.Errorf("shown as %+v", now)
	}
}

func (s *supervised) shown(t *testing.T) control.Status {
	t.Helper()
	var shown control.Status
	if err := json.Unmarshal([]byte(s.does("session", "show", "one", "--format", "json")), &shown); err != nil {
		t.Fatal(err)
	}
	return shown
}

// An agent can remove what says who made its private home. If the owner is killed, the home
// is still named, with the command that removes it.
func TestHomeWithoutItsClaimIsNamed(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "codex", "out {\"type\":\"turn.completed\",\"usage\":{}}\n")
	home := s.path("work/.codex/bus/0000000000000001")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "auth.json"), []byte("key"), 0o600); err != nil {
		t.Fatal(err)
	}
	line := home + `: private home, of an unknown owner; if no run uses it, "bus-agent instructions clean" removes it` + "\n"
	if out, _ := s.command("doctor").Output(); !strings.Contains(string(out), line) {
		t.Errorf("doctor says %q", out)
	}
	lock, err := os.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := statefile.TryLock(lock); err != nil {
		t.Fatal(err)
	}
	if out, _ := s.command("doctor").Output(); strings.Contains(string(out), "unknown owner") {
		t.Errorf("of a home in use: %q", out)
	}
	if err := statefile.Unlock(lock); err != nil {
		t.Fatal(err)
	}
	if out, err := s.command("instructions", "clean").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if exists(home) {
		t.Error("it is not removed")
	}
}
