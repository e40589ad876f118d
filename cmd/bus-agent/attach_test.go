//go:build linux

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// Attach shows the terminal read-only unless --write is given, with the tmux of the
// user, and refuses a session without a terminal.
func TestAttach(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "tmux", "args args\nenv environment\n")
	owner := exec.CommandContext(t.Context(), "sleep", "600")
	s.start(owner)
	t.Cleanup(func() { owner.Process.Kill(); owner.Wait() })
	identity, err := process.Identify(owner.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]session.Mode{"look": session.ModeTmux, "plain": session.ModeMinimal} {
		e := control.Entry{
			SessionID: name, Name: name, State: session.StateReady, Folder: name, Owner: identity, OwnerPID: owner.Process.Pid,
			Settings: control.Settings{Runtime: "claude", Workdir: s.path("work"), Mode: mode},
		}
		if mode == session.ModeTmux {
			e.TmuxSocket, e.RunID = s.path("socket"), "20260101-0000000000-1-1"
		}
		writeEntry(t, s.path("home"), e)
	}
	for _, c := range []struct{ args, want string }{
		{"look", "-u\n-N\n-S\n" + s.path("socket") + "\nattach-session\n-r\n"},
		{"look --write", "-u\n-N\n-S\n" + s.path("socket") + "\nattach-session\n"},
	} {
		cmd := s.command(append([]string{"session", "attach"}, strings.Fields(c.args)...)...)
		cmd.Env = append(cmd.Env, "TMUX=/tmp/other,1,0", "TMUX_PANE=%1")
		term := openTerminal(t)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = term.tty, term.tty, term.tty
		s.start(cmd)
		shown := <-term.screen()
		if code := exitCode(t, cmd.Wait()); code != 0 || !strings.Contains(shown, "Ctrl-B d detaches") {
			t.Errorf("%s: exit code %d, %q", c.args, code, shown)
		}
		if got, err := os.ReadFile(s.path("work/args")); err != nil || string(got) != c.want {
			t.Errorf("%s: tmux got %q, %v, want %q", c.args, got, err, c.want)
		}
		if got, err := os.ReadFile(s.path("work/environment")); err != nil || strings.Contains(string(got), "TMUX") {
			t.Errorf("%s: tmux has %q, %v", c.args, got, err)
		}
	}
	for _, c := range []struct{ name, want string }{
		{"plain", `session plain has no terminal, because it was not started with --mode tmux; "session watch plain --follow" shows it`},
		{"look", "attach needs a terminal as standard input and output"},
	} {
		if out := s.exits(2, "session", "attach", c.name); !strings.Contains(out, c.want) {
			t.Errorf("%s: %q, want %q", c.name, out, c.want)
		}
	}
	out := s.exits(0, "session", "show", "look")
	for _, want := range []string{"mode: ", "tmux\n", "tmux socket: ", s.path("socket"), "record: ", "20260101-0000000000-1-1"} {
		if !strings.Contains(out, want) {
			t.Errorf("show prints %q, want %q in it", out, want)
		}
	}
}
