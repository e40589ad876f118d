//go:build linux

package main

import (
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/busdk/bus-agent/internal/testneed"
)

// terminal is a pseudo-terminal: what is written to tty is read from pty.
type terminal struct{ pty, tty *os.File }

func openTerminal(t *testing.T) terminal {
	t.Helper()
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		testneed.Lacking(t, "no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { pty.Close() })
	var number uint32
	var unlocked int32
	controls(t, pty, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked))
	controls(t, pty, syscall.TIOCGPTN, unsafe.Pointer(&number))
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return terminal{pty, tty}
}

func controls(t *testing.T, f *os.File, request uintptr, argument unsafe.Pointer) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(argument)); errno != 0 {
		t.Fatalf("ioctl %#x: %v", request, errno)
	}
}

// screen collects what the terminal shows until its last user is gone.
func (term terminal) screen() <-chan string {
	term.tty.Close() // only the program has it now
	out := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(term.pty) // EIO is how a terminal ends
		out <- strings.ReplaceAll(string(b), "\r\n", "\n")
	}()
	return out
}

const answer = `out {"type":"item.completed","item":{"id":"i","type":"agent_message","text":"the answer"}}` + "\n" +
	`out {"type":"turn.completed","usage":{}}` + "\n"

// On one terminal the answer is shown once, after the spinner is cleared.
func TestTerminalShowsTheAnswerOnce(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, agentName, "touch up\nwait go\n"+answer)
	term := openTerminal(t)
	cmd := s.command("run", "--text", "x", "--no-color")
	cmd.Stdout, cmd.Stderr = term.tty, term.tty
	s.start(cmd)

	// The agent waits until the spinner has been seen.
	term.tty.Close()
	shown := ""
	buffer := make([]byte, 4096)
	for !strings.Contains(shown, "waiting for "+agentName) {
		n, err := term.pty.Read(buffer)
		if err != nil {
			t.Fatalf("no spinner after %q: %v", shown, err)
		}
		shown += string(buffer[:n])
	}
	if err := os.WriteFile(s.path("work/go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	rest := <-term.screen()
	shown = strings.ReplaceAll(shown, "\r\n", "\n") + rest
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Fatalf("exit code %d; the terminal shows %q", code, shown)
	}
	if n := strings.Count(shown, "the answer"); n != 1 {
		t.Errorf("the answer is shown %d times in %q, want once", n, shown)
	}
	if !strings.HasPrefix(shown, "bus-agent: "+agentName+", model auto\n") {
		t.Errorf("the first line is not the announcement: %q", shown)
	}
	before, _, _ := strings.Cut(shown, "the answer")
	if i := strings.LastIndex(before, "\r\x1b[K"); i < strings.LastIndex(before, "waiting for") {
		t.Errorf("the spinner was not cleared before the answer: %q", shown)
	}
}

// An answer that comes only with the result is shown on the terminal too.
func TestTerminalShowsTheAnswerOfTheResult(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "claude", `out {"type":"result","subtype":"success","is_error":false,"result":"the answer","session_id":"11111111-1111-1111-1111-111111111111"}`+"\n")
	term := openTerminal(t)
	cmd := s.command("run", "--text", "x", "--no-color")
	cmd.Stdout, cmd.Stderr = term.tty, term.tty
	s.start(cmd)
	shown := <-term.screen()
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Fatalf("exit code %d; the terminal shows %q", code, shown)
	}
	if n := strings.Count(shown, "the answer"); n != 1 {
		t.Errorf("the answer is shown %d times in %q, want once", n, shown)
	}
}

// While an agent works, the terminal shows the running tool and the time.
func TestTerminalShowsTheRunningTool(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, agentName, `out {"type":"item.started","item":{"id":"c","type":"command_execution","command":"make","status":"in_progress"}}`+"\nwait go\n"+answer)
	term := openTerminal(t)
	cmd := s.command("run", "--text", "x", "--no-color")
	cmd.Stdout, cmd.Stderr = term.tty, term.tty
	s.start(cmd)
	term.tty.Close()
	shown := ""
	buffer := make([]byte, 4096)
	for !regexp.MustCompile(agentName + `: running \S.* \(\d+s\)`).MatchString(shown) {
		n, err := term.pty.Read(buffer)
		if err != nil {
			t.Fatalf("no progress after %q: %v", shown, err)
		}
		shown += string(buffer[:n])
	}
	if !strings.Contains(shown, "[tool]") {
		t.Errorf("the progress is shown before the conversation: %q", shown)
	}
	if err := os.WriteFile(s.path("work/go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	rest := <-term.screen()
	if code := exitCode(t, cmd.Wait()); code != 0 || !strings.Contains(rest, "the answer") || strings.LastIndex(rest, "running") > strings.LastIndex(rest, "\r\x1b[K") {
		t.Errorf("exit code %d; the terminal shows %q", code, rest)
	}
}

// Lists have a header on a terminal, and none elsewhere.
func TestTerminalListsHaveHeaders(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, agentName, answer)
	for args, want := range map[string]string{"runs list": "ID  STATUS  RUNTIME", "session list": "ID  NAME  RUNTIME", "runtime list": "RUNTIME  STATE"} {
		cmd := s.command(strings.Fields(args)...)
		term := openTerminal(t)
		cmd.Stdout, cmd.Stderr = term.tty, term.tty
		s.start(cmd)
		shown := <-term.screen()
		if code := exitCode(t, cmd.Wait()); code != 0 || !strings.HasPrefix(strings.Join(strings.Fields(shown), "  "), want) {
			t.Errorf("%s: exit code %d; the terminal shows %q", args, code, shown)
		}
		out, err := s.command(strings.Fields(args)...).Output()
		if err != nil || strings.Contains(string(out), "RUNTIME") {
			t.Errorf("%s: %v; a pipe gets %q", args, err, out)
		}
	}
}

// With standard output elsewhere, the terminal shows the conversation and the
// answer goes there.
func TestTerminalAndFile(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, agentName, answer)
	term := openTerminal(t)
	file, err := os.Create(s.path("out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := s.command("run", "--text", "x")
	cmd.Stdout, cmd.Stderr = file, term.tty
	s.start(cmd)
	shown := <-term.screen()
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Fatalf("exit code %d; the terminal shows %q", code, shown)
	}
	out, err := os.ReadFile(s.path("out"))
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != "the answer\n" {
		t.Errorf("standard output is %q", out)
	}
	if !strings.Contains(shown, "the answer") {
		t.Errorf("the terminal does not show the conversation: %q", shown)
	}
	if !strings.HasPrefix(shown, "\x1b[36mbus-agent:\x1b[0m ") {
		t.Errorf("a terminal gets no color: %q", shown)
	}
}

// Quiet, dumb and colorless terminals get no control sequences.
func TestPlainTerminals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		env  string
		want string
	}{
		"quiet":    {[]string{"-q", "run", "--text", "x"}, "", ""},
		"dumb":     {[]string{"run", "--text", "x"}, "TERM=dumb", "bus-agent: " + agentName + ", model auto\n"},
		"no color": {[]string{"run"}, "NO_COLOR=1", "bus-agent: run needs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Long enough for a spinner to be seen, if there were one.
			s := newSandbox(t, agentName, "pause 400ms\n"+answer)
			term := openTerminal(t)
			cmd := s.command(test.args...)
			cmd.Env = append(cmd.Env, test.env)
			cmd.Stdout, cmd.Stderr = term.tty, term.tty
			s.start(cmd)
			shown := <-term.screen()
			_ = cmd.Wait()
			if !strings.HasPrefix(shown, test.want) || strings.ContainsAny(shown, "\x1b") || test.want == "" && shown != "" {
				t.Errorf("the terminal shows %q", shown)
			}
		})
	}
}
