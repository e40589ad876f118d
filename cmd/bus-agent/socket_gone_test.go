//go:build linux

package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/process"
)

// A session whose socket is gone is ended all the same, in order.
func TestStopWithoutASocket(t *testing.T) {
	t.Parallel()
	s := startSupervised(t)
	if err := os.Remove(s.socket()); err != nil {
		t.Fatal(err)
	}
	out, err := s.command("session", "send", "one", "hi").CombinedOutput()
	if code := exitCode(t, err); code != 1 || !strings.HasSuffix(string(out), `; "session stop one" ends it`+"\n") {
		t.Errorf("exit code %d, %q", code, out)
	}
	said := "bus-agent: session one cannot be reached; sending SIGTERM to process " + strconv.Itoa(s.entry.OwnerPID) + ", which holds it\n"
	if out := s.does("session", "stop", "one"); out != said {
		t.Errorf("it says %q, want %q", out, said)
	}
	for _, id := range append(s.children, s.entry.Owner) {
		if process.LifeOf(id) == process.Alive {
			t.Errorf("%s is alive", id)
		}
	}
	if out := s.does("session", "list", "--all"); !slices.Contains(strings.Fields(out), "stopped") {
		t.Errorf("listed as %q", out)
	}
}
