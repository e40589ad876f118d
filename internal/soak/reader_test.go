package soak

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/internal/testneed"
)

// A reader that has seen enough, as in "bus-agent run | head -1", ends the agent
// and all that it has started.
func TestReaderThatGoesAwayEndsTheAgent(t *testing.T) {
	atOnce(t)
	head, err := exec.LookPath("head")
	if err != nil {
		testneed.Lacking(t, "no head: %v", err)
	}
	for way, first := range map[string]string{
		ndjson: "first\n",
		events: `{"kind":"text","message_id":"output","text":"first\n","delta":true}` + "\n",
	} {
		t.Run(way, func(t *testing.T) {
			atOnce(t)
			box := newSandbox(t)
			if err := os.Remove(box.path("bin/stub")); err != nil {
				t.Fatal(err)
			}
			child, daemon := box.path("child"), box.path("daemon")
			if _, err := backendtest.Install(box.path("bin"), "stub",
				backendtest.Fork(child, backendtest.Hang()), backendtest.ForkSession(daemon, backendtest.Hang()),
				backendtest.Print("first\n"), backendtest.PrintRun("", 4<<20, "\n"), backendtest.Hang()); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), box.path("bin/bus-agent"), "run", "--agent", "plain", "--text", "x", "--output-format", way)
			cmd.Dir, cmd.Env = box.path("work"), box.environ()
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			reader := exec.CommandContext(t.Context(), head, "-1")
			reader.Stdin = pipe
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := reader.Output()
			if err != nil || string(line) != first {
				t.Errorf("head prints %q, %v, want %q", line, err, first)
			}
			pipe.Close()
			gone := time.Now()
			err = cmd.Wait()
			if took := time.Since(gone); took > 30*time.Second {
				t.Errorf("bus-agent ends after %v", took)
			}
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
				t.Errorf("bus-agent ends with %v, want exit code 1", err)
			}
			for _, lock := range []string{child, daemon} {
				if alive, err := backendtest.Locked(lock); alive || err != nil {
					t.Errorf("%s is alive: %t, %v", lock, alive, err)
				}
			}
		})
	}
}
