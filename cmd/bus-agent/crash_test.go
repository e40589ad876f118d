//go:build linux

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/session/control"
)

// supervised is a session that a sandbox has started.
type supervised struct {
	*sandbox
	entry    control.Entry
	children []string // identities of the agent and the like
}

// startSupervised starts a session with a turn that does not end. Its ID is known.
func startSupervised(t *testing.T) *supervised {
	t.Helper()
	s := &supervised{sandbox: newSandbox(t, "claude", "converse\n")}
	s.does("session", "start", "--agent", "claude", "--name", "one", "file "+s.path("there"))
	s.await("there")
	testwait.Until(t, "the ID and the conversation, which are written concurrently", func() (control.Entry, bool) {
		s.find(t)
		return s.entry, s.entry.NativeID != "" && !s.entry.Fresh
	})
	for _, pid := range childrenOf(t, s.entry.OwnerPID) {
		id, err := process.Identify(pid)
		if err != nil {
			t.Fatal(err)
		}
		s.children = append(s.children, id)
	}
	if len(s.children) == 0 {
		t.Fatal("the owner has no agent")
	}
	return s
}

// socket returns the socket of the session, which is elsewhere where its name would be
// too long.
func (s *supervised) socket() string {
	folder := filepath.Join(sessionsDir(s.path("home")), s.entry.Folder)
	if socket := filepath.Join(folder, "socket"); len(socket) <= 103 {
		return socket
	}
	sum := sha256.Sum256([]byte(folder))
	return fmt.Sprintf("/tmp/bus-agent-%d/%x", os.Getuid(), sum[:8])
}

// does runs a command that must succeed and returns what it prints.
func (s *supervised) does(args ...string) string {
	s.t.Helper()
	return s.exits(0, args...)
}

// isGone waits for the end of a process.
func isGone(t *testing.T, identity string) {
	t.Helper()
	testwait.Until(t, "the end of a process", func() (string, bool) { return identity, process.LifeOf(identity) != process.Alive })
}

// childrenOf returns the children of a process.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	for _, name := range stats {
		text, _ := os.ReadFile(name) // it may have ended
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(name))) // by the pattern
			list = append(list, child)
		}
	}
	return list
}

// An owner that is killed takes the agent along. The session shows as crashed and can be
// resumed.
func TestCrashedOwner(t *testing.T) {
	t.Parallel()
	s := startSupervised(t)
	if err := syscall.Kill(s.entry.OwnerPID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	isGone(t, s.entry.Owner)
	for _, id := range s.children {
		isGone(t, id)
	}
	if out := s.does("session", "list"); !slices.Contains(strings.Fields(out), "crashed") {
		t.Errorf("listed as %q", out)
	}
	out, err := s.command("session", "send", "one", "hi").CombinedOutput()
	if code := exitCode(t, err); code != 1 || !strings.Contains(string(out), "session one has crashed") {
		t.Errorf("exit code %d, %q", code, out)
	}
	out, err = s.command("session", "start", "--agent", "claude", "--name", "one").CombinedOutput()
	if code := exitCode(t, err); code != 2 || string(out) != "bus-agent: session \"one\" has crashed: \"session resume one\" continues it, \"session stop one\" marks it as stopped\n" {
		t.Errorf("exit code %d, %q", code, out)
	}
	s.does("session", "resume", "one")
	if out := s.does("-q", "session", "send", "one", "hi"); out != "" {
		t.Errorf("quiet says %q", out)
	}
	s.does("session", "stop", "one")
}

// An owner that is asked to end stops its session in order, and so does stop:
// nothing is left of either when the commands return.
func TestOwnerLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *supervised){
		"stop": func(s *supervised) { s.does("session", "stop", "one") },
		"SIGTERM": func(s *supervised) {
			if err := syscall.Kill(s.entry.OwnerPID, syscall.SIGTERM); err != nil {
				s.t.Error(err)
			}
			isGone(s.t, s.entry.Owner)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSupervised(t)
			end(s)
			for _, id := range s.children {
				if process.LifeOf(id) == process.Alive {
					t.Errorf("%s is alive", id)
				}
			}
			if out := s.does("session", "list"); out != "" {
				t.Errorf("listed: %q", out)
			}
			if out := s.does("session", "list", "--all"); !slices.Contains(strings.Fields(out), "stopped") {
				t.Errorf("listed as %q", out)
			}
		})
	}
}
