//go:build linux

package main

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/internal/process"
)

// "session stop" returns when the process that held the session has ended, however
// long that takes: here it gives a client that has not said anything a second. The
// second command of a pair finds nothing that is still ending.
func TestStopAwaits(t *testing.T) {
	t.Parallel()
	for name, then := range map[string][]string{"stop": {"session", "stop", "one"}, "resume": {"session", "resume", "one"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSupervised(t)
			conn, err := net.Dial("unix", s.socket())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			s.does("session", "stop", "one")
			if process.LifeOf(s.entry.Owner) == process.Alive {
				t.Error("the process that held it is alive")
			}
			s.does(then...)
			if name == "resume" {
				s.does("session", "stop", "one")
			}
		})
	}
}

// A resume that is refused, here because a folder of the session is gone, starts and
// writes nothing.
func TestRefusedResumeWritesNothing(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "claude", "converse\n")
	s.makeDir("extra")
	s.exits(0, "session", "start", "--agent", "claude", "--name", "one", "--add-dir", s.path("extra"))
	s.exits(0, "session", "send", "one", "hi")
	s.exits(0, "session", "stop", "one")
	if err := os.Remove(s.path("extra")); err != nil {
		t.Fatal(err)
	}
	long := time.Unix(1, 0)
	visit := func(each func(path string)) {
		if err := filepath.WalkDir(sessionsDir(s.path("home")), func(path string, _ fs.DirEntry, err error) error {
			each(path)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	visit(func(path string) {
		if err := os.Chtimes(path, long, long); err != nil {
			t.Error(err)
		}
	})
	out := s.exits(2, "session", "resume", "one")
	if !strings.Contains(out, s.path("extra")) || strings.Count(out, "\n") != 1 {
		t.Errorf("it says %q", out)
	}
	visit(func(path string) {
		if info, err := os.Lstat(path); err != nil || !info.ModTime().Equal(long) {
			t.Errorf("%s was changed, %v", path, err)
		}
	})
}
