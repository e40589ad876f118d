//go:build linux

package main

import (
	"net"
	"testing"

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
