//go:build acceptance && linux

package tmux

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/session"
)

// The test binary is also the agent of the tests, and a program that is killed.
const (
	stubEnv    = "TMUX_TEST_STUB"
	programEnv = "TMUX_TEST_PROGRAM"
)

func TestMain(m *testing.M) {
	time.AfterFunc(5*time.Minute, func() { os.Exit(99) }) // whatever a test leaves behind
	if text := os.Getenv(stubEnv); text != "" {
		var s stub
		must(json.Unmarshal([]byte(text), &s))
		s.run()
		return
	}
	if dir := os.Getenv(programEnv); dir != "" {
		program(dir)
		return
	}
	os.Unsetenv("BUS_AGENT_RUN") // the tests themselves may be part of a run
	os.Exit(m.Run())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// program opens a session with an agent that ignores signals, and waits.
func program(dir string) {
	o := options(stub{Stubborn: true, PIDs: dir})
	o.Started = func(_ int, socket string) {
		must(os.WriteFile(filepath.Join(dir, "socket"), []byte(socket), 0o600))
	}
	s, err := open(context.Background(), o, dir)
	must(err)
	s.Send(session.Message{Text: "child"})
	select {}
}

// A stub is an interactive CLI.
type stub struct {
	Slow     time.Duration // to start
	Dialog   bool          // asks whether the folder is to be trusted
	Swallow  int           // Enters
	Stubborn bool          // ignores signals
	Ended    bool          // before it has begun
	Hang     bool          // a child that does nothing
	Plain    bool          // shows no prompt and no sign of work
	Busy     string        // file that keeps it from reading while it exists
	PIDs     string        // folder in which processes leave a file with their PID as the name

	keys  chan string
	input string
}

func (s *stub) run() {
	if s.Stubborn || s.Hang {
		signal.Ignore(unix.SIGHUP, unix.SIGTERM, unix.SIGINT)
	}
	if s.PIDs != "" {
		must(os.WriteFile(filepath.Join(s.PIDs, strconv.Itoa(os.Getpid())), nil, 0o600))
	}
	if s.Hang {
		select {}
	}
	if s.Ended {
		fmt.Println("cannot begin")
		os.Exit(3)
	}
	time.Sleep(s.Slow)
	termios, err := unix.IoctlGetTermios(0, unix.TCGETS)
	must(err)
	termios.Lflag &^= unix.ICANON | unix.ECHO | unix.ISIG | unix.IEXTEN
	termios.Iflag &^= unix.ICRNL | unix.IXON
	must(unix.IoctlSetTermios(0, unix.TCSETS, termios))
	fmt.Print("\x1b[?2004hstub\r\n")
	s.keys = make(chan string)
	go s.read()
	if s.Dialog {
		fmt.Print("Do you trust this folder? ")
		for <-s.keys != "\r" {
		}
		fmt.Print("\r\n")
	}
	s.converse()
}

// read splits what is typed into keys and pasted text. A terminal that has gone
// ends a CLI that is not stubborn.
func (s *stub) read() {
	const begin, end = "\x1b[200~", "\x1b[201~"
	var pending string
	pasting := false
	buf := make([]byte, 64<<10)
	for {
		testwait.Poll(func() bool { return s.Busy == "" || !exists(s.Busy) })
		n, err := os.Stdin.Read(buf)
		if err != nil {
			if s.Stubborn {
				select {}
			}
			os.Exit(0)
		}
		for pending += string(buf[:n]); pending != ""; {
			if pasting {
				text, rest, ended := strings.Cut(pending, end)
				if !ended {
					break
				}
				s.keys <- "paste" + text
				pending, pasting = rest, false
				continue
			}
			if rest, ok := strings.CutPrefix(pending, begin); ok {
				pending, pasting = rest, true
				continue
			}
			_, size := utf8.DecodeRuneInString(pending)
			if !utf8.FullRuneInString(pending) {
				break
			}
			key := pending[:size]
			pending = pending[size:]
			s.keys <- key
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (s *stub) prompt() {
	if !s.Plain {
		fmt.Print("❯\u00a0")
	}
}

func (s *stub) converse() {
	s.prompt()
	for key := range s.keys {
		if text, ok := s.edit(key); ok {
			s.work(text)
			s.prompt()
		}
	}
}

// edit takes a key and returns what was submitted.
func (s *stub) edit(key string) (text string, submitted bool) {
	switch {
	case key == "\r" && s.Swallow > 0:
		s.Swallow--
	case key == "\r":
		text, s.input = s.input, ""
		fmt.Print("\r\n")
		return text, true
	case key == "\x15":
		s.input = ""
		fmt.Print("\r\x1b[2K")
		s.prompt()
	case key == "\x03" || key == "\x1b":
	default:
		key = strings.TrimPrefix(key, "paste")
		s.input += key
		fmt.Print(strings.ReplaceAll(key, "\n", "\r\n"))
	}
	return "", false
}

func (s *stub) work(text string) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch word {
	case "exit":
		code, err := strconv.Atoi(rest)
		must(err)
		fmt.Print("farewell\r\n")
		os.Exit(code)
	case "die":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "child":
		self, err := os.Executable()
		must(err)
		text, err := json.Marshal(stub{Hang: true, PIDs: s.PIDs})
		must(err)
		c := exec.Command(self)
		c.Env = []string{stubEnv + "=" + string(text)} // all else is cleared
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		must(c.Start())
		fmt.Printf("child %d\r\n", c.Process.Pid)
	case "show":
		dir, err := os.Getwd()
		must(err)
		fmt.Printf("%q %q %q %q\r\n", os.Args[1:], dir, os.Getenv("VALUE"), os.Getenv("PATH"))
	case "lines":
		n, err := strconv.Atoi(rest)
		must(err)
		for i := range n {
			fmt.Printf("line %d\r\n", i)
		}
	case "wait":
		s.await(rest)
	case "print":
		raw, err := strconv.Unquote(rest)
		must(err)
		fmt.Print(raw + "\r\n")
	case "ask":
		// A request of so many lines, and what is pressed.
		n, err := strconv.Atoi(rest)
		must(err)
		fmt.Print("delete everything\r\n" + strings.Repeat("# harmless\r\n", n) + "Allow this?")
		fmt.Printf("\r\x1b[2Kpressed %q\r\n", <-s.keys)
	default:
		fmt.Printf("got %s\r\n", fingerprint(text))
	}
}

// await works until a file exists, or Escape or C-c is pressed.
func (s *stub) await(file string) {
	fmt.Print("working (esc to interrupt)\r\n")
	s.prompt()
	var steered []string
	ending := ""
	for ending == "" {
		select {
		case key := <-s.keys:
			if key == "\x03" || key == "\x1b" {
				ending = fmt.Sprintf("interrupted by %q", key)
			} else if text, ok := s.edit(key); ok {
				steered = append(steered, text)
				s.prompt()
			}
		case <-time.After(10 * time.Millisecond):
			if _, err := os.Stat(file); err == nil {
				ending = "done"
			}
		}
	}
	// What showed the work is scrolled out of sight.
	fmt.Printf("\r\x1b[2K%s%s %q\r\n", strings.Repeat("\r\n", nearEnd), ending, steered)
}

// fingerprint identifies a text.
func fingerprint(text string) string {
	return fmt.Sprintf("%d bytes %x", len(text), sha256.Sum256([]byte(text)))
}
