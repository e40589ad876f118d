//go:build linux

package main

import (
	"bytes"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/testwait"
)

// signalLimit is how long after a signal the program may live, as a fairClock goes:
// twice what is promised. The clock of the promise is tested in package command.
const signalLimit = 16 * time.Second

// cleanupLimit is the time that package runner takes after a signal to remove files.
const cleanupLimit = 750 * time.Millisecond

// A fairClock shows the time that a program gets on this machine: it goes as other
// clocks do while a processor is free, and more slowly while others want them all.
// It shows how long a program that hangs has hung, and how long one that
// waits for a processor would have taken.
type fairClock struct{ ticks atomic.Int64 }

const fairTick = 20 * time.Millisecond

var fair = sync.OnceValue(func() *fairClock {
	c := new(fairClock)
	go func() {
		runtime.LockOSThread()
		used := func() time.Duration {
			var spec unix.Timespec
			unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spec)
			return time.Duration(spec.Nano())
		}
		for ; ; c.ticks.Add(1) {
			time.Sleep(fairTick * 9 / 10)
			for begun := used(); used()-begun < fairTick/10; {
			}
		}
	}()
	return c
})

func (c *fairClock) now() time.Duration { return time.Duration(c.ticks.Load()) * fairTick }

// A busyState is something that the program can be doing when a signal comes.
type busyState struct {
	agent string // codex where it is empty
	play  string // of the agent
	args  []string
	// arrange changes the call, before which other commands can be run; what it
	// returns waits until the state is reached.
	arrange func(t *testing.T, s *sandbox, cmd *exec.Cmd) (await func())
	code    int // exit code, -1 where the program ends by the signal itself
	// late: the program can end by itself before the signal comes.
	late bool
	kept bool // of a killed run: its sessions, or what the program could not yet remove
}

const (
	endlessText = `out {"type":"thread.started","thread_id":"t"}` + "\n" +
		`repeat 1000000 {"type":"item.completed","item":{"id":"i","type":"agent_message","text":"more"}}` + "\n"
	up = "touch $HOME/up\n"
)

var busyStates = map[string]busyState{
	"reading the prompt": {args: []string{"run", "--prompt", "../fifo"}, arrange: unreadPrompt, code: 1},
	"the agent runs":     {play: up + "hang\n", args: []string{"run", "--text", "x"}, code: 1},
	"the agent is deaf":  {play: "stubborn\n" + up + "hang\n", args: []string{"run", "--text", "x"}, code: 1},
	"no reader of standard output": {
		play: endlessText, args: []string{"run", "--text", "x", "--output-format", "ndjson"}, arrange: fullPipe(true, false), code: 1,
	},
	"no reader of standard error": {
		play: endlessText, args: []string{"run", "--text", "x"}, arrange: fullPipe(false, true), code: 1,
	},
	"no reader at all, and the agent is deaf": {
		play: "stubborn\n" + endlessText, args: []string{"run", "--text", "x", "--output-format", "events"}, arrange: fullPipe(true, true), code: 1,
	},
	"no reader of the help":  {args: []string{"help", "run"}, arrange: fullPipe(true, false), code: -1},
	"asking for a version":   {play: up + "hang\n", args: []string{"doctor", "codex"}, code: 1},
	"a deaf agent's version": {play: "stubborn\n" + up + "hang\n", args: []string{"doctor", "codex"}, code: 1},
	"starting a session":     {agent: "claude", play: up + "hang\n", args: []string{"session", "start", "--agent", "claude"}, code: 1},
	"watching a session":     {agent: "claude", play: "converse\n", args: []string{"session", "watch", "one", "--follow", "--output-format", "events"}, arrange: watching, code: 1},
	"waiting for an answer":  {agent: "claude", play: "converse\n", args: []string{"session", "send", "one", "hello"}, arrange: connected, code: 1},
	"talking in a terminal":  {agent: "claude", play: "stubborn\n" + up + "hang\n", args: []string{"chat", "--agent", "claude"}, arrange: inTerminal, code: 1},
}

// unreadPrompt makes the prompt a pipe without a writer.
func unreadPrompt(t *testing.T, s *sandbox, _ *exec.Cmd) func() {
	name := s.path("fifo")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() {
		testwait.Until(t, "a reader", func() (error, bool) {
			f, err := os.OpenFile(name, os.O_WRONLY|unix.O_NONBLOCK, 0) // fails without one
			if err == nil {
				t.Cleanup(func() { f.Close() })
				os.Remove(name)
			}
			return err, err == nil
		})
	}
}

// fullPipe connects streams with a small pipe without a reader.
func fullPipe(stdout, stderr bool) func(*testing.T, *sandbox, *exec.Cmd) func() {
	return func(t *testing.T, _ *sandbox, cmd *exec.Cmd) func() {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
			t.Fatal(err)
		}
		if stdout {
			cmd.Stdout = w
		}
		if stderr {
			cmd.Stderr = w
		}
		return func() {
			w.Close()
			awaitFull(t, r)
		}
	}
}

// awaitFull waits until a pipe is full. A short line that does not fit is not written
// in part: it is full when nothing more arrives.
func awaitFull(t *testing.T, r *os.File) {
	t.Helper()
	before := 0
	settled(t, func() bool {
		n, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
		if err != nil {
			t.Fatal(err)
		}
		same := n == before && n > 0
		before = n
		return same
	})
}

// holdSession starts a session whose turn does not end.
func holdSession(t *testing.T, s *sandbox, cmd *exec.Cmd) {
	t.Helper()
	start := s.command("session", "start", "--agent", "claude", "--name", "one", "file "+s.path("there"))
	start.Env = cmd.Env
	if out, err := start.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// watching waits until the program prints what a session does.
func watching(t *testing.T, s *sandbox, cmd *exec.Cmd) func() {
	holdSession(t, s, cmd)
	return fullPipe(true, false)(t, s, cmd)
}

// connected waits until the program has connected with a session.
func connected(t *testing.T, s *sandbox, cmd *exec.Cmd) func() {
	holdSession(t, s, cmd)
	return func() {
		testwait.Until(t, "a connection", func() (any, bool) {
			links, _ := filepath.Glob("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/fd/*")
			return links, slices.ContainsFunc(links, func(link string) bool {
				target, _ := os.Readlink(link)
				return strings.HasPrefix(target, "socket:")
			})
		})
	}
}

// inTerminal gives the program a terminal.
func inTerminal(t *testing.T, s *sandbox, cmd *exec.Cmd) func() {
	term := openTerminal(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.tty, term.tty, term.tty
	return func() {
		term.screen()
		s.await("home/up")
	}
}

// Whatever the program is doing, one signal ends it in time, SIGQUIT as SIGINT
// does. Nothing of a run is left, or what doctor removes where an orderly end takes too
// long. The program handles all signals in one way, so each comes in one state, and one
// of them in each of the others.
func TestHostileStatesNeedOneSignal(t *testing.T) {
	t.Parallel()
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	// Most of them only wait, so more of them run at once than parallel subtests do.
	var all sync.WaitGroup
	turns := make(chan struct{}, 16)
	states := maps.Clone(busyStates)
	maps.Copy(states, waitingStates)
	for i, name := range slices.Sorted(maps.Keys(states)) {
		sent := signals
		if name != "the agent runs" {
			sent = signals[i%len(signals):][:1]
		}
		for _, sig := range sent {
			all.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				t.Run(name+"/"+sig.String(), func(t *testing.T) { states[name].end(t, sig) })
			})
		}
	}
	all.Wait()
}

func (b busyState) end(t *testing.T, sig syscall.Signal) {
	agent := agentName
	if b.agent != "" {
		agent = b.agent
	}
	s := newSandbox(t, agent, b.play)
	if err := os.Mkdir(s.path("tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := s.command(b.args...)
	cmd.Env = append(cmd.Env, "TMPDIR="+s.path("tmp"), inTime+"=yes")
	cmd.Stdout, cmd.Stderr = io.Discard, &stderr
	await := func() { s.await("home/up") }
	if b.arrange != nil {
		await = b.arrange(t, s, cmd)
	}
	s.start(cmd)
	await()
	sent, sentFair := time.Now(), fair().now()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	took := time.Since(sent)
	if took := fair().now() - sentFair; took > signalLimit {
		t.Errorf("it lives for %v after the signal", took)
	}
	if code := exitCode(t, err); code != b.code && !(b.late && (code == 0 || code == -1)) {
		t.Errorf("exit code %d (%v), want %d, standard error:\n%s", code, err, b.code, stderr.String())
	}
	if strings.Contains(stderr.String(), "goroutine ") {
		t.Errorf("it prints a stack:\n%s", stderr.String())
	}
	// On a busy machine it may give up to end in order, or to remove what it names,
	// which is unread where standard error has no reader.
	unseen := cmd.Stderr != &stderr && took >= cleanupLimit
	if took >= process.ExitAfter || unseen || strings.Contains(stderr.String(), "bus-agent: left behind: ") {
		doctor := s.command("doctor", "--owner", strconv.Itoa(cmd.Process.Pid), "--sweep")
		doctor.Env = cmd.Env
		if out, err := doctor.CombinedOutput(); err != nil {
			t.Errorf("doctor: %v\n%s", err, out)
		}
	}
	if b.args[0] != "session" { // whose owner is another process
		if !b.kept {
			expectNothingIn(t, s.path("work"))
			expectNothingIn(t, s.path("tmp"))
		}
		if t.Failed() {
			t.Logf("standard error:\n%s", stderr.String())
		}
	}
}

// A reader that neither reads nor closes does not keep a run past its timeout, nor
// the answer of one that has ended.
func TestReaderThatDoesNotRead(t *testing.T) {
	t.Parallel()
	long := `out {"type":"item.completed","item":{"id":"i","type":"agent_message","text":"` + strings.Repeat("long ", 4000) + `"}}` + "\n"
	for name, test := range map[string]struct {
		play, want string
		args       []string
	}{
		"agent that talks": {endlessText, "no result within 1s", []string{"--timeout", "1s", "--output-format", "ndjson"}},
		"answer":           {long + `out {"type":"turn.completed","usage":{}}` + "\n", "cannot write standard output: its reader neither reads nor closes it", []string{"--timeout", "20s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, agentName, test.play)
			cmd := s.command(append([]string{"run", "--text", "x"}, test.args...)...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			fullPipe(true, false)(t, s, cmd)
			s.start(cmd)
			watch := time.AfterFunc(testwait.Limit, func() { cmd.Process.Kill() })
			defer watch.Stop()
			if code := exitCode(t, cmd.Wait()); code != 1 || !strings.Contains(stderr.String(), test.want) {
				t.Errorf("exit code %d, standard error:\n%s", code, stderr.String())
			}
			expectNothingIn(t, s.path("work"))
		})
	}
}
