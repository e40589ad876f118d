//go:build linux

package main

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// typist talks with a program in a terminal.
type typist struct {
	t     *testing.T
	pty   terminal
	cmd   *exec.Cmd
	shown string // not yet looked for
	all   strings.Builder
	home  string
	box   *sandbox
}

// startChat starts a conversation with the fake agent in a terminal.
func startChat(t *testing.T, args ...string) *typist {
	t.Helper()
	return startChatWith(t, nil, args...)
}

func startChatWith(t *testing.T, attr *syscall.SysProcAttr, args ...string) *typist {
	t.Helper()
	s := newSandbox(t, "claude", "converse\n")
	term := openTerminal(t)
	cmd := s.command(append([]string{"chat", "--agent", "claude", "--no-color"}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = term.tty, term.tty, term.tty, attr
	s.start(cmd)
	term.tty.Close()
	return &typist{t: t, pty: term, cmd: cmd, home: s.path("home"), box: s}
}

func (p *typist) types(text string) {
	p.t.Helper()
	if _, err := p.pty.pty.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// sees waits until the terminal shows text, after what was seen before.
func (p *typist) sees(text string) {
	p.t.Helper()
	watch := time.AfterFunc(testwait.Limit, func() { p.cmd.Process.Kill() })
	defer watch.Stop()
	buffer := make([]byte, 4096)
	for !strings.Contains(p.shown, text) {
		n, err := p.pty.pty.Read(buffer)
		if err != nil {
			p.t.Fatalf("%q is not shown, but %q: %v", text, p.shown, err)
		}
		p.shown += string(buffer[:n])
		p.all.Write(buffer[:n])
	}
	_, p.shown, _ = strings.Cut(p.shown, text)
}

// ends waits until the program has ended, and reads what it still shows.
func (p *typist) ends(want int) {
	p.t.Helper()
	watch := time.AfterFunc(testwait.Limit, func() { p.cmd.Process.Kill() })
	defer watch.Stop()
	_, _ = io.Copy(&p.all, p.pty.pty) // EIO is how a terminal ends
	if code := exitCode(p.t, p.cmd.Wait()); code != want {
		p.t.Errorf("exit code %d, want %d", code, want)
	}
}

func TestChat(t *testing.T) {
	t.Parallel()
	p := startChat(t)
	p.sees("> ")
	p.types("hello\r")
	p.sees("you said hello\r\n")
	p.sees("> ")
	p.types("may I\r")
	p.sees("[approval request] Bash {\"command\":\"make test\"}")
	p.sees("then Enter: ")
	p.types("y\r")
	p.sees("accept\r\n")
	p.sees("allow\r\n")
	p.sees("> ")
	p.types("work\r")
	p.sees("working")
	p.types("\x03") // ends the turn
	p.sees("^C")
	p.sees("> ")
	p.types("half a line\x03")
	p.sees("press Ctrl-C again")
	p.types("still here\r")
	p.sees("you said still here\r\n")
	p.sees("> ")
	p.types("\x04")
	p.sees("bus-agent chat --agent claude --resume 5e551011-0000-4000-8000-000000000001 continues it\r\n")
	p.ends(0)
}

// A question and the next message are read from the same keys, whichever comes first.
func TestChatQuestions(t *testing.T) {
	t.Parallel()
	p := startChat(t)
	p.sees("> ")
	p.types("ask me\rah") // the beginning of the next message
	p.sees("[question] Way: Which way?\r\n  | 1. left: shorter\r\n  | 2. right\r\n[question] More: What else?\r\n")
	p.sees("answer 1 of 2: a number, your text, or /decline, then Enter: ")
	p.types("a\r")
	p.sees("kept for the next message")
	p.sees("then Enter: ")
	p.types("\r")
	p.sees("the question needs an answer\r\n")
	p.sees("then Enter: ")
	p.types("2\x7fstraight öö\x7fn\r1,2\r") // both answers at once
	p.sees("answer 2 of 2: numbers with commas, your text, or /decline, then Enter: ")
	p.sees("straight ön and fast, loud\r\n")
	p.sees("you said aha\r\n")
	p.sees("> ")
	p.types("ask me\r")
	p.sees("then Enter: ")
	p.types("/decline\r")
	p.sees("decline\r\n")
	p.sees("deny\r\n")
	p.sees("> ")
	p.types("ask me\r")
	p.sees("then Enter: ")
	p.types("left\r\x03")
	p.sees("cancel\r\n")
	p.sees("> ")
	p.types("\x04")
	p.ends(0)
}

// The commands of another terminal can use the session of a chat.
func TestChatIsASession(t *testing.T) {
	t.Parallel()
	p := startChat(t)
	p.sees("> ")
	list, _, err := sessionsOf(p.home).List(control.Filter{State: session.StateReady})
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	id := list[0].SessionID
	p.box.exits(0, "session", "send", id, "--no-wait", "may I")
	p.sees(`[approval request] Bash {"command":"make test"}; answer it with "session approve"`)
	p.box.exits(0, "session", "approve", id, "accept")
	p.sees("allow\r\n")
	p.types("hello\r")
	p.sees("you said hello\r\n")
	p.box.exits(0, "session", "stop", id)
	p.sees("bus-agent: the agent has ended\r\n")
	p.ends(1)
}

// Hooks are notified of a conversation, and the store knows it.
func TestChatNotifiesHooks(t *testing.T) {
	t.Parallel()
	hooked := t.TempDir() + "/hooked"
	p := startChat(t, "--hook-file", hooked, "--hook-command", "/bin/false")
	p.sees("> ")
	p.types("hello\r")
	p.sees("you said hello\r\n")
	p.sees("> ")
	p.types("fail no luck\r")
	p.sees("no luck")
	p.sees("> ")
	p.types("\x04")
	p.sees("continues it\r\n")
	p.ends(0)
	// A line can be written while the terminal leaves raw mode: it has one "\r" more
	// then, which a terminal does not show.
	shown := strings.ReplaceAll(p.all.String(), "\r\r\n", "\r\n")
	if !strings.Contains(shown, "bus-agent: hook command false failed (further failures not shown): exit code 1\r\n") {
		t.Errorf("the terminal shows %q", shown)
	}
	text, err := os.ReadFile(hooked)
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for line := range strings.Lines(string(text)) {
		var payload control.Payload
		if err := json.Unmarshal([]byte(line), &payload); err != nil {
			t.Fatal(err)
		}
		events = append(events, string(payload.Event)+" "+payload.Data["message"])
		if e, err := sessionsOf(p.home).Get(payload.SessionID); err != nil || e.State != session.StateStopped || e.NativeID != "5e551011-0000-4000-8000-000000000001" {
			t.Errorf("%+v, %v", e, err)
		}
	}
	want := "SessionStart started,OnMessage hello,OnMessage fail no luck,OnError claude: no luck,SessionStop the conversation has ended"
	if got := strings.Join(events, ","); got != want {
		t.Errorf("hooks got %s", got)
	}
}

func TestChatEndsByCtrlCTwice(t *testing.T) {
	t.Parallel()
	p := startChat(t)
	p.sees("> ")
	p.types("\x03")
	p.sees("press Ctrl-C again")
	p.types("\x03")
	p.ends(0)
}

func TestChatEndsWithItsAgent(t *testing.T) {
	t.Parallel()
	p := startChat(t)
	p.sees("> ")
	p.types("die\r")
	p.sees("exit code 7")
	p.sees("bus-agent: the agent has ended\r\n")
	p.ends(1)
}

func TestChatNeedsATerminal(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "claude", "converse\n")
	out, err := s.command("chat", "--agent", "claude").CombinedOutput()
	if code := exitCode(t, err); code != 2 || !strings.HasPrefix(string(out), "bus-agent: chat needs a terminal") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("exit code %d, %q", code, out)
	}
}

// What was typed before a request was shown does not answer it, nor does the end of
// a line that was begun before.
func TestTypingAheadAnswersNoApprovalRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ ahead, rest, next string }{
		{"y\r", "", "you said y\r\n"},
		{"y\ry\ra\r", "", "you said y\r\n"},
		{"carr", "y\r", "you said carry\r\n"},
		{"y", "\r", "you said y\r\n"},
	} {
		t.Run(c.ahead, func(t *testing.T) {
			t.Parallel()
			p := startChat(t)
			p.sees("> ")
			p.types("may I\r" + c.ahead)
			p.sees("then Enter: ")
			if c.rest != "" {
				p.types(c.rest)
				p.sees("kept for the next message")
				p.sees("then Enter: ")
			}
			p.types("perhaps\ry\x7fno\r")
			p.sees("decline\r\n")
			p.sees("deny\r\n")
			p.sees(c.next)
			p.types("\x04")
			p.ends(0)
			if shown := p.all.String(); strings.Contains(shown, "accept\r\n") || strings.Contains(shown, "allow\r\n") {
				t.Errorf("the terminal shows %q", shown)
			}
		})
	}
}

// modes returns the modes of the terminal that are off in raw mode.
func (p *typist) modes() uint32 {
	p.t.Helper()
	var modes syscall.Termios
	controls(p.t, p.pty.pty, syscall.TCGETS, unsafe.Pointer(&modes))
	return modes.Lflag & (syscall.ICANON | syscall.ECHO | syscall.ISIG)
}

// While the program is stopped its terminal is in its ordinary mode.
func TestChatThatIsStopped(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(p *typist){
		"Ctrl-Z while a line is typed": func(p *typist) { p.types("half\x1a") },
		"Ctrl-Z during a turn":         func(p *typist) { p.types("work\r"); p.sees("working"); p.types("\x1a") },
		"SIGTSTP": func(p *typist) {
			if err := p.cmd.Process.Signal(syscall.SIGTSTP); err != nil {
				p.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startChatWith(t, &syscall.SysProcAttr{Setpgid: true})
			p.sees("> ")
			if p.modes() != 0 {
				t.Fatalf("before: modes %#x", p.modes())
			}
			stop(p)
			reached(t, "the stop", func() bool {
				text, _ := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/stat")
				_, state, _ := strings.Cut(string(text), ") ")
				return strings.HasPrefix(state, "T")
			})
			if p.modes() != syscall.ICANON|syscall.ECHO|syscall.ISIG {
				t.Errorf("while it is stopped: modes %#x", p.modes())
			}
			if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			reached(t, "raw mode", func() bool { return p.modes() == 0 })
			p.types("\x03\x03\x04")
			_, _ = io.Copy(&p.all, p.pty.pty)
			_ = p.cmd.Wait()
			if p.modes() != syscall.ICANON|syscall.ECHO|syscall.ISIG {
				t.Errorf("at its end: modes %#x", p.modes())
			}
		})
	}
}

// However a conversation ends, its terminal is as it was.
func TestChatRestoresItsTerminal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sig  syscall.Signal // all are handled in one way
		play func(p *typist)
	}{
		"while a line is typed": {syscall.SIGTERM, func(p *typist) { p.types("half") }},
		"during a turn":         {syscall.SIGHUP, func(p *typist) { p.types("work\r"); p.sees("working") }},
		"while it asks":         {syscall.SIGINT, func(p *typist) { p.types("may I\r"); p.sees("then Enter: ") }},
		"while it is answered":  {syscall.SIGQUIT, func(p *typist) { p.types("may I\r"); p.sees("then Enter: "); p.types("y"); p.sees("y") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startChat(t)
			p.sees("> ")
			test.play(p)
			if err := p.cmd.Process.Signal(test.sig); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(&p.all, p.pty.pty)
			_ = p.cmd.Wait()
			if p.modes() != syscall.ICANON|syscall.ECHO|syscall.ISIG {
				t.Errorf("the terminal is left in modes %#x", p.modes())
			}
		})
	}
}
