//go:build acceptance && linux

package tmux

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// limit is far more than a test takes.
const limit = 20 * time.Second

func options(s stub) Options {
	self, err := os.Executable()
	must(err)
	text, err := json.Marshal(s)
	must(err)
	terminal := engine.Terminal{Prompt: "❯ ", Busy: []string{"esc to interrupt"}, Quiet: time.Second}
	if s.Plain {
		terminal = engine.Terminal{WarmUp: -1, Quiet: 2 * time.Second}
	}
	return Options{Program: engine.Program{
		Runtime: "stub", Path: self, Terminal: terminal,
		Env: []string{stubEnv + "=" + string(text), "VALUE=a b;", "PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"},
	}}
}

// A real session is one in real tmux.
type real struct {
	*session.Session
	t      *testing.T
	socket string
	pid    int
	dir    string
}

// open opens a session with an agent in tmux.
func open(ctx context.Context, o Options, dir string) (*session.Session, error) {
	start := engine.Start{Workdir: dir}
	e, p, err := Start(ctx, o, start)
	if err != nil {
		return nil, err
	}
	return session.Open(ctx, o.Runtime, e, p, engine.Transport{}, start, session.Options{})
}

func openReal(t *testing.T, o Options, dir string) *real {
	t.Helper()
	r := &real{t: t, dir: dir}
	o.Started = func(pid int, socket string) { r.pid, r.socket = pid, socket }
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var err error
	if r.Session, err = open(ctx, o, dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Stop(context.Background(), "the test is over") })
	return r
}

func (r *real) say(text string) (agent.Result, error) {
	r.t.Helper()
	return r.wait(r.Send(session.Message{Text: text}))
}

func (r *real) wait(turn *session.Turn) (agent.Result, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), limit)
	defer cancel()
	return turn.Wait(ctx)
}

// expect sends text and wants an answer.
func (r *real) expect(text, want string) {
	r.t.Helper()
	if result, err := r.say(text); err != nil || result.Text != want {
		r.t.Errorf("%.40q is answered with %.200q, %v; want %.200q", text, result.Text, err, want)
	}
}

// tmux runs a command in the server, as a person would.
func (r *real) tmux(args ...string) string {
	r.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", r.socket}, args...)...).CombinedOutput()
	if err != nil {
		r.t.Errorf("tmux %q: %v, %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// works waits until the screen shows that the agent works.
func (r *real) works() {
	r.t.Helper()
	testwait.Until(r.t, "work", func() (string, bool) {
		screen := r.tmux("capture-pane", "-p")
		return screen, strings.Contains(screen, "esc to interrupt")
	})
}

// alive returns those of the processes that left a file in dir that live.
func alive(t *testing.T, dir string) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// A zombie that init has not reaped is not a running process.
		state, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err == nil && !strings.Contains(string(state), ") Z ") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestConversation(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"without arguments": nil,
		"with arguments":    {"-x", "a b", "semicolon;", `\;`, ";", "#{pane_id} #(touch pwned)", "$HOME"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "a b#(touch pwned)#[x")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			o := options(stub{})
			o.Args = args
			link := filepath.Join(t.TempDir(), "stub $(touch pwned) #S;") // no shell sees it
			if err := os.Symlink(o.Path, link); err != nil {
				t.Fatal(err)
			}
			o.Path = link
			r := openReal(t, o, dir)
			r.expect("show", strings.ReplaceAll(fmt.Sprintf("%q %q %q %q", args, dir, "a b;", "/usr/bin:/bin"), "nil", "[]"))
			for _, text := range []string{"grüß 👩‍👩‍👧 ;", "two\nlines\n", "-l", `\;`, "#(touch pwned)", "é"} {
				r.expect(text, "got "+fingerprint(text))
			}
			for _, text := range []string{"/quit", "!ls"} {
				if result, err := r.say(text); err != nil || !strings.Contains(result.Text, "got "+fingerprint(guardLine+text)) {
					t.Errorf("%q: %q, %v", text, result.Text, err)
				}
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("something ran: %v, %v", entries, err)
			}
			if mode := r.tmux("display-message", "-p", "#{session_attached} #{window_width} #{window_height}"); mode != "0 200 50" {
				t.Errorf("session %q", mode)
			}
		})
	}
}

func TestAnswerLongerThanTheScreen(t *testing.T) {
	t.Parallel()
	r := openReal(t, options(stub{}), t.TempDir())
	for range 2 {
		var want []string
		for i := range 500 {
			want = append(want, fmt.Sprintf("line %d", i))
		}
		r.expect("lines 500", strings.Join(want, "\n"))
	}
}

func TestSlowStartDialogAndLostEnter(t *testing.T) {
	t.Parallel()
	o := options(stub{Slow: time.Second, Dialog: true, Swallow: 2})
	o.Terminal.Dialogs = []engine.Dialog{{Contains: "trust this folder", Keys: []string{"Enter"}}}
	r := openReal(t, o, t.TempDir())
	r.expect("one", "got "+fingerprint("one"))
	r.expect("two", "got "+fingerprint("two"))
}

func TestCLIThatShowsNothing(t *testing.T) {
	t.Parallel()
	o := options(stub{Plain: true})
	o.Terminal.WarmUp = 3 * time.Second // a terminal in which no CLI reads yet spoils what is typed
	r := openReal(t, o, t.TempDir())
	for _, text := range []string{"one", "two"} {
		if result, err := r.say(text); err != nil || !strings.Contains(result.Text, "got "+fingerprint(text)) {
			t.Errorf("%q, %v", result.Text, err)
		}
	}
}

func TestLongMessages(t *testing.T) {
	t.Parallel()
	paste, keys := options(stub{}), options(stub{})
	keys.Terminal.Keys = true
	for name, c := range map[string]struct {
		o    Options
		size int
	}{"pasted": {paste, 300_000}, "typed": {keys, 60_000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := openReal(t, c.o, t.TempDir())
			for shift := range 4 { // so that emoji lie across the borders in each way
				text := strings.Repeat("x", shift) + strings.Repeat(strings.Repeat("👋🏽", 40)+"\n", c.size/4/321) + "end"
				result, err := r.say(text)
				if want := "got " + fingerprint(text); err != nil || !strings.HasSuffix(result.Text, want) {
					t.Errorf("shift %d: %.200q, %v; want %s", shift, result.Text, err, want)
				}
			}
			if c.size > 100_000 {
				text := strings.Repeat(strings.Repeat("word ", 30)+"\n", c.size/151) + "end"
				result, err := r.say(text)
				if want := "got " + fingerprint(text); err != nil || !strings.HasSuffix(result.Text, want) {
					t.Errorf("%d bytes: %.200q, %v; want %s", len(text), result.Text, err, want)
				}
			}
		})
	}
}

func TestScrolledPane(t *testing.T) {
	t.Parallel()
	for _, typed := range []bool{false, true} {
		t.Run(fmt.Sprint(typed), func(t *testing.T) {
			t.Parallel()
			o := options(stub{})
			o.Terminal.Keys = typed
			r := openReal(t, o, t.TempDir())
			r.tmux("copy-mode")
			if mode := r.tmux("display-message", "-p", "#{pane_in_mode}"); mode != "1" {
				t.Fatalf("mode %q", mode)
			}
			r.expect("one", "got "+fingerprint("one"))
		})
	}
}

// The terminal shows whether the agent has read what was typed.
func TestUnread(t *testing.T) {
	t.Parallel()
	busy := filepath.Join(t.TempDir(), "busy")
	r := openReal(t, options(stub{Busy: busy}), t.TempDir())
	p := &tmuxPane{path: r.tmux("display-message", "-p", "#{pane_tty}")}
	if p.unread() {
		t.Error("there is something before anything was typed")
	}
	must(os.WriteFile(busy, nil, 0o600))
	turn := r.Send(session.Message{Text: "one"})
	testwait.Until(t, "input", func() (_ any, ok bool) { return nil, p.unread() })
	must(os.Remove(busy))
	if result, err := r.wait(turn); err != nil || !strings.Contains(result.Text, "got "+fingerprint("one")) {
		t.Errorf("%q, %v", result.Text, err)
	}
	testwait.Until(t, "the input to be read", func() (_ any, ok bool) { return nil, !p.unread() })
}

func TestInterruptKeys(t *testing.T) {
	t.Parallel()
	for key, code := range map[string]string{"": "\x1b", "C-c": "\x03"} {
		t.Run("key "+key, func(t *testing.T) {
			t.Parallel()
			o := options(stub{})
			if key != "" {
				o.Terminal.Interrupt = []string{key}
			}
			r := openReal(t, o, t.TempDir())
			turn := r.Send(session.Message{Text: "wait never"})
			r.works()
			if err := r.Interrupt(t.Context()); err != nil {
				t.Fatal(err)
			}
			result, err := r.wait(turn)
			if !errors.Is(err, agent.ErrCanceled) || !strings.Contains(result.Text, fmt.Sprintf("interrupted by %q", code)) {
				t.Errorf("%q, %v", result.Text, err)
			}
			r.expect("two", "got "+fingerprint("two"))
		})
	}
}

func TestSteerReachesTheTurn(t *testing.T) {
	t.Parallel()
	o := options(stub{})
	o.Terminal.TypesWhileBusy = true
	r := openReal(t, o, t.TempDir())
	turn := r.Send(session.Message{Text: "wait go"})
	r.works()
	// The turn is known to run once Send is over, which Interrupt and Steer wait for.
	if steered := r.Steer(t.Context(), session.Message{Text: "also this 👋"}); steered != turn {
		t.Error("it is a separate turn")
	}
	if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if result, err := r.wait(turn); err != nil || !strings.Contains(result.Text, `done ["also this 👋"]`) {
		t.Errorf("%q, %v", result.Text, err)
	}
}

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, stubborn := range []bool{false, true} {
		t.Run(fmt.Sprint(stubborn), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := openReal(t, options(stub{Stubborn: stubborn, PIDs: dir}), dir)
			if _, err := r.say("child"); err != nil {
				t.Fatal(err)
			}
			testwait.Until(t, "two processes", func() ([]int, bool) { pids := alive(t, dir); return pids, len(pids) == 2 })
			r.Stop(t.Context(), "enough")
			if pids := alive(t, dir); len(pids) > 0 {
				t.Errorf("alive: %v", pids)
			}
			if _, err := os.Stat(filepath.Dir(r.socket)); !os.IsNotExist(err) {
				t.Errorf("the folder of the socket is left: %v", err)
			}
		})
	}
}

func TestEndOfTheAgent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]agent.ExitError{
		"exit 3": {Code: 3}, "die": {Code: -1, Signal: "SIGKILL"}, "exit 0": {},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			o := options(stub{PIDs: dir})
			o.Secrets = []string{"HEADER_SECRET=mcp-pass"}
			r := openReal(t, o, dir)
			for _, before := range []string{"child", "mcp-pass"} {
				if _, err := r.say(before); err != nil {
					t.Fatal(err)
				}
			}
			_, err := r.say(text)
			exit, failed := errors.AsType[*agent.ExitError](err)
			switch {
			case !errors.Is(err, agent.ErrAgent):
				t.Error(err)
			case want == agent.ExitError{}:
				if failed {
					t.Error(exit)
				}
			case !failed || exit.Code != want.Code || exit.Signal != want.Signal || !strings.Contains(exit.Stderr, text) || strings.Contains(exit.Stderr, "mcp-pass"):
				t.Errorf("%v: %+v", err, exit)
			}
			<-r.Done()
			if pids := alive(t, dir); len(pids) > 0 {
				t.Errorf("alive: %v", pids)
			}
		})
	}
}

func TestAgentThatDoesNotBegin(t *testing.T) {
	t.Parallel()
	missing := options(stub{})
	missing.Path = filepath.Join(t.TempDir(), "nothing")
	script := options(stub{})
	script.Path = filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script.Path, []byte("#!/nowhere/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	noTmux := options(stub{})
	noTmux.Env = []string{"PATH=/nowhere"}
	asking := options(stub{Dialog: true})
	asking.Terminal.StartTimeout = 2 * time.Second
	for name, c := range map[string]struct {
		o    Options
		kind error
		says string
	}{
		"it ends":                    {options(stub{Ended: true}), agent.ErrAgent, "cannot begin"},
		"it is not there":            {missing, agent.ErrUsage, "nothing"},
		"it cannot be run":           {script, agent.ErrAgent, "ended"},
		"there is no tmux":           {noTmux, agent.ErrNotInstalled, "tmux is needed"},
		"it asks an unknown request": {asking, agent.ErrTimeout, "Do you trust"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := open(t.Context(), c.o, t.TempDir())
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %v with %q", err, c.kind, c.says)
			}
			if s != nil {
				s.Stop(t.Context(), "")
			}
		})
	}
}

func TestOpeningThatIsGivenUpLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	opened := make(chan error)
	go func() {
		_, err := open(ctx, options(stub{Dialog: true, PIDs: dir}), dir)
		opened <- err
	}()
	testwait.Until(t, "the agent", func() ([]int, bool) { pids := alive(t, dir); return pids, len(pids) == 1 })
	cancel()
	if err := <-opened; !errors.Is(err, agent.ErrCanceled) {
		t.Error(err)
	}
	if pids := alive(t, dir); len(pids) > 0 {
		t.Errorf("alive: %v", pids)
	}
}

func TestEndOfTmux(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := openReal(t, options(stub{Stubborn: true, PIDs: dir}), dir)
	turn := r.Send(session.Message{Text: "wait never"})
	r.works()
	if err := unix.Kill(r.pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := r.wait(turn); !errors.Is(err, agent.ErrAgent) {
		t.Error(err)
	}
	<-r.Done()
	if pids := alive(t, dir); len(pids) > 0 {
		t.Errorf("alive: %v", pids)
	}
}

// A program that removes temporary files removes the socket, but not the server.
func TestSocketThatIsRemoved(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(socket string) error{
		"socket": os.Remove,
		"folder": func(socket string) error { return os.RemoveAll(filepath.Dir(socket)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := openReal(t, options(stub{PIDs: dir}), dir)
			turn := r.Send(session.Message{Text: "wait never"})
			r.works()
			if err := remove(r.socket); err != nil {
				t.Fatal(err)
			}
			if _, err := r.wait(turn); !errors.Is(err, agent.ErrAgent) || !strings.Contains(err.Error(), "the socket of tmux is gone") {
				t.Error(err)
			}
			<-r.Done()
			if pids := alive(t, dir); len(pids) > 0 {
				t.Errorf("alive: %v", pids)
			}
		})
	}
}

func TestProgramThatIsKilledIsSweptUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	must(err)
	c := exec.Command(self)
	c.Env = append(os.Environ(), programEnv+"="+dir, "TMPDIR="+dir)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "two processes", func() ([]int, bool) { pids := alive(t, dir); return pids, len(pids) == 2 })
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	if len(alive(t, dir)) == 0 {
		t.Error("they ended by themselves, so nothing is proved")
	}
	ended, survived, err := process.EndStaleProcesses(t.Context(), c.Process.Pid)
	if err != nil || len(survived) > 0 {
		t.Errorf("ended %+v, survived %+v, %v", ended, survived, err)
	}
	if pids := alive(t, dir); len(pids) > 0 {
		t.Errorf("alive: %v; ended %+v", pids, ended)
	}
	socket, err := os.ReadFile(filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.OpenRoot(filepath.Dir(string(socket)))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	owner, release, ok := process.StaleClaim(folder)
	if !ok || owner != c.Process.Pid {
		t.Fatalf("the folder of the socket is not known to be stale: %d, %t", owner, ok)
	}
	release()
	if out, err := exec.Command("tmux", "-N", "-S", string(socket), "list-sessions").CombinedOutput(); err == nil {
		t.Errorf("the server still runs: %s", out)
	}
}
