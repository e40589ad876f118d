package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/testneed"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/runner"
)

// Programs that panic while an agent runs.
const (
	panicsName      = "bus-agent-that-panics"
	panicsInRunName = "program-that-panics-in-run"
)

// panics is bus-agent with a goroutine that panics at SIGUSR1. Nothing can
// recover that.
func panics() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	go func() {
		<-c
		panic("another goroutine")
	}()
	program()
}

// panicsInRun is a program that uses the library and whose callback panics when
// SIGUSR1 came and the agent has said something.
func panicsInRun() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	var r runner.Runner
	_, err := r.Run(context.Background(), agent.Request{
		Runtime: agentName, Prompt: "x", Workdir: ".",
	}, agent.Output{Stdout: panicking{c}})
	fmt.Fprintln(os.Stderr, err)
}

type panicking struct{ c chan os.Signal }

func (p panicking) Write([]byte) (int, error) {
	<-p.c
	panic("a callback")
}

// descendants are scripts of what an agent leaves: each holds descriptor 9 open
// and says that it is up on it. GO exists when the run is about to end.
var descendants = map[string]string{
	"fork":            `echo up >&9; exec sleep 600`,
	"session":         `exec setsid sh -c 'echo up >&9; exec sleep 600'`,
	"double fork":     `(sh -c 'echo up >&9; exec sleep 600' &)`,
	"daemon":          `cd /; exec </dev/null >/dev/null 2>&1; (setsid sh -c 'echo up >&9; exec sleep 600' &)`,
	"deaf to SIGTERM": `trap '' TERM; echo up >&9; exec setsid sleep 600`,
	"forking on": `trap '' TERM; echo up >&9; until [ -e GO ]; do sleep 0.05; done; ` +
		`i=0; while [ $i -lt 300 ]; do i=$((i+1)); (read x <BLOCK) & sleep 0.005; done; read x <BLOCK`,
	"double fork without environment": `(env -i setsid sh -c 'echo up >&9; exec sleep 600' &)`,
}

// only returns one kind of descendants.
func only(kind string) map[string]string { return map[string]string{kind: descendants[kind]} }

// A life is the reading end of a named pipe that others hold open.
type life struct {
	path string
	fd   int
}

func newLife(t *testing.T) *life {
	t.Helper()
	l := &life{path: filepath.Join(t.TempDir(), "life")}
	if err := unix.Mkfifo(l.path, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if l.fd, err = unix.Open(l.path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(l.fd) })
	return l
}

// read returns at once: with nothing and no error when no process holds the pipe
// open.
func (l *life) read(buf []byte) (int, error) {
	for {
		n, err := unix.Read(l.fd, buf)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// await waits until a process reports that it is up.
func (l *life) await(t *testing.T) {
	t.Helper()
	testwait.Until(t, "that it is up", func() (n int, ok bool) {
		n, _ = l.read(make([]byte, 3))
		return n, n == 3
	})
}

// alive reports whether a process holds the pipe open.
func (l *life) alive() bool {
	n, err := l.read(make([]byte, 100))
	return n > 0 || err == unix.EAGAIN
}

// A commons is a workdir that runs share.
type commons struct {
	work, tmp string
	tools     string // PATH of the scripts
}

func newCommons(t *testing.T) commons {
	t.Helper()
	c := commons{work: t.TempDir(), tmp: t.TempDir(), tools: os.Getenv("PATH")}
	for _, name := range []string{"sh", "setsid", "sleep", "env"} {
		if _, err := exec.LookPath(name); err != nil {
			testneed.Lacking(t, "no %s: %v", name, err)
		}
	}
	return c
}

// A restlessRun is a run whose agent has started descendants.
type restlessRun struct {
	sandbox *sandbox
	commons commons
	dir     string
	lives   map[string]*life
	cmd     *exec.Cmd
	stderr  bytes.Buffer
}

// startRestless starts the program that is called by name, with an agent that
// runs scripts. It does not wait for them to be up.
func (c commons) startRestless(t *testing.T, program string, scripts map[string]string) *restlessRun {
	t.Helper()
	r := &restlessRun{commons: c, lives: map[string]*life{}, dir: t.TempDir()}
	if err := unix.Mkfifo(r.dir+"/block", 0o600); err != nil {
		t.Fatal(err)
	}
	play := "marked\n"
	for kind, script := range scripts {
		r.lives[kind] = newLife(t)
		script = strings.NewReplacer("GO", quoted(r.dir+"/go"), "BLOCK", quoted(r.dir+"/block")).Replace(script)
		play += "sh PATH=" + quoted(c.tools) + "; export PATH; exec 9>" + quoted(r.lives[kind].path) + "; " + script + "\n"
	}
	r.sandbox = newSandbox(t, agentName, play+"out {\"type\":\"thread.started\",\"thread_id\":\"t\"}\nhang\n")
	if err := link(r.sandbox.path("bin"), program); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	r.cmd = r.command("run", "--text", "x")
	r.cmd.Path = r.sandbox.path("bin/" + program)
	r.cmd.Args[0] = r.cmd.Path
	r.cmd.Stdout, r.cmd.Stderr = io.Discard, &r.stderr
	r.sandbox.start(r.cmd)
	return r
}

// await waits until all descendants are up.
func (r *restlessRun) await(t *testing.T) {
	t.Helper()
	for _, l := range r.lives {
		l.await(t)
	}
}

// alive returns the kinds of descendants of which something lives.
func (r *restlessRun) alive() (kinds []string) {
	for kind, l := range r.lives {
		if l.alive() {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// command returns bus-agent in the shared workdir.
func (r *restlessRun) command(args ...string) *exec.Cmd {
	cmd := r.sandbox.command(args...)
	cmd.Dir = r.commons.work
	cmd.Env = append(cmd.Env, "TMPDIR="+r.commons.tmp)
	return cmd
}

// sweep calls doctor for what the run has left and returns what it says.
func (r *restlessRun) sweep(t *testing.T, args ...string) string {
	t.Helper()
	cmd := r.command(append([]string{"doctor", "--owner", strconv.Itoa(r.cmd.Process.Pid)}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	return string(out)
}

// An ending is how bus-agent ends.
type ending struct {
	program string
	signal  syscall.Signal
	code    int
	swept   bool // by doctor, as nothing of bus-agent was left to do it
}

var endings = map[string]ending{
	"SIGINT":           {program: "bus-agent", signal: syscall.SIGINT, code: 1},
	"SIGTERM":          {program: "bus-agent", signal: syscall.SIGTERM, code: 1},
	"SIGHUP":           {program: "bus-agent", signal: syscall.SIGHUP, code: 1},
	"panic in Run":     {program: panicsInRunName, signal: syscall.SIGUSR1, code: 2},
	"panic during Run": {program: panicsName, signal: syscall.SIGUSR1, code: 2, swept: true},
	"SIGKILL":          {program: "bus-agent", signal: syscall.SIGKILL, code: -1, swept: true},
}

// However bus-agent ends, nothing of its run is left, and nothing else is
// touched. Each agent has a descendant of every kind; all runs are in one workdir
// at once.
func TestNoSurvivors(t *testing.T) {
	t.Parallel()
	testNoSurvivors(t, descendants)
}

// testNoSurvivors tests every ending with one run for each of the sets of
// descendants.
func testNoSurvivors(t *testing.T, sets ...map[string]string) {
	c := newCommons(t)
	innocent := newInnocents(t, c)
	var ready, all sync.WaitGroup
	for name, e := range endings {
		for _, set := range sets {
			ready.Add(1)
			all.Go(func() {
				up := sync.OnceFunc(ready.Done)
				defer up()
				// Parallel subtests would not all run at once.
				t.Run(name, func(t *testing.T) {
					defer innocent.check(t)
					if runtime.GOOS != "linux" && e.swept {
						t.Skip("the agent ends with its owner only on Linux")
					}
					r := c.startRestless(t, e.program, set)
					r.await(t)
					up()
					ready.Wait() // a later run would remove the home of one that is dead
					r.end(t, e)
				})
			})
		}
	}
	all.Wait()
	innocent.end(t)
	for _, dir := range []string{c.work, c.tmp} {
		expectNothingIn(t, dir)
	}
}

// end ends a run and checks that nothing is left of it.
func (r *restlessRun) end(t *testing.T, e ending) {
	t.Helper()
	if err := os.WriteFile(r.dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Process.Signal(e.signal); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, r.cmd.Wait()); code != e.code {
		t.Errorf("exit code %d, want %d\n%s", code, e.code, r.stderr.String())
	}
	// What a machine that is too busy does not remove in time is named.
	if !e.swept && strings.Contains(r.stderr.String(), "bus-agent: left behind: ") {
		r.sweep(t, "--sweep")
	}
	if e.swept {
		said := r.sweep(t, "--sweep")
		if !strings.Contains(said, ": private home, ") || !strings.Contains(said, ": temporary files, ") {
			t.Errorf("doctor says:\n%s", said)
		}
		// What it is about to do comes before what it has done.
		for _, verb := range []string{"remov", "end"} {
			before, after := strings.Index(said, "bus-agent: "+verb+"ing "), strings.Index(said, "\n"+verb+"ed ")
			if after >= 0 && (before < 0 || before > after) || verb == "remov" && after < 0 {
				t.Errorf("%sing is not announced:\n%s", verb, said)
			}
		}
	}
	if kinds := r.alive(); len(kinds) > 0 {
		t.Errorf("descendants live on: %s", strings.Join(kinds, ", "))
	}
}

func expectNothingIn(t *testing.T, dir string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if name != dir {
			t.Errorf("left behind: %s", name)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// Innocents are processes that the runs have nothing to do with, but that live
// where they work.
type innocents struct {
	lives map[string]*life
	other *restlessRun
	cmds  []*exec.Cmd
}

func newInnocents(t *testing.T, c commons) *innocents {
	t.Helper()
	i := &innocents{lives: map[string]*life{}, other: c.startRestless(t, "bus-agent", only("session"))}
	i.lives["of another run"] = i.other.lives["session"]
	for _, name := range []string{"same executable", "nothing in common"} {
		l := newLife(t)
		script := "exec 9>" + quoted(l.path) + "; echo up >&9; exec sleep 600"
		s := newSandbox(t, agentName, "sh PATH="+quoted(c.tools)+"; export PATH; "+script+"\nhang\n")
		cmd := exec.Command(s.path("bin/" + agentName))
		cmd.Env = []string{"GORACE=" + raceOptions}
		if name == "nothing in common" {
			cmd = exec.Command("/bin/sh", "-c", script)
			cmd.Env = []string{"PATH=" + c.tools}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		} else {
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		}
		cmd.Dir = c.work
		s.start(cmd)
		i.cmds = append(i.cmds, cmd)
		i.lives[name] = l
	}
	t.Cleanup(func() {
		for _, cmd := range i.cmds {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			cmd.Wait()
		}
	})
	for _, l := range i.lives {
		l.await(t)
	}
	return i
}

func (i *innocents) check(t *testing.T) {
	t.Helper()
	for name, l := range i.lives {
		if !l.alive() {
			t.Errorf("a bystander was ended: %s", name)
		}
	}
}

// end ends the other run, which must have lived until now.
func (i *innocents) end(t *testing.T) {
	t.Helper()
	i.check(t)
	if err := i.other.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	i.other.cmd.Wait()
	if len(i.other.alive()) > 0 {
		t.Error("the other run lives on")
	}
}

// Doctor shows what a dead owner has left before it ends it.
func TestDoctor(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the agent ends with its owner only on Linux")
	}
	c := newCommons(t)
	r := c.startRestless(t, "bus-agent", only("deaf to SIGTERM"))
	r.await(t)
	if said := r.sweep(t, "--sweep"); said != "nothing to sweep\n" || len(r.alive()) == 0 {
		t.Errorf("of a live run: %s", said)
	}
	r.cmd.Process.Kill()
	r.cmd.Wait()
	said := testwait.Until(t, "the end of the agent with its owner", func() (said string, ok bool) {
		said = r.sweep(t)
		return said, strings.Count(said, "process ") <= 1
	})
	var report struct {
		Swept     bool
		Processes []struct {
			PID     int
			Program string
			Owner   int `json:"owner_pid"`
			Ended   bool
		}
		Folders []struct {
			Path, What string
			Removed    bool
		}
	}
	if err := json.Unmarshal([]byte(r.sweep(t, "--format", "json")), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Processes) != 1 || len(report.Folders) != 2 || report.Swept {
		t.Fatalf("got %+v", report)
	}
	p := report.Processes[0]
	if p.Program != "sleep" || p.Owner != r.cmd.Process.Pid || p.Ended {
		t.Errorf("got %+v", p)
	}
	if want := fmt.Sprintf("process %d: sleep, of bus-agent %d, ", p.PID, p.Owner); !strings.HasPrefix(said, want) {
		t.Errorf("says %q, want it to begin with %q", said, want)
	}
	for _, f := range report.Folders {
		if want := fmt.Sprintf("%s: %s, of bus-agent %d\n", f.Path, f.What, p.Owner); !strings.Contains(said, want) {
			t.Errorf("says %q, want %q in it", said, want)
		}
		if _, err := os.Stat(f.Path); err != nil {
			t.Errorf("to look has removed it: %v", err)
		}
	}
	if len(r.alive()) == 0 {
		t.Error("to look has ended it")
	}
	if said := r.sweep(t, "--sweep", "--quiet"); said != "" || len(r.alive()) > 0 {
		t.Errorf("quiet: %q; alive: %v", said, r.alive())
	}
	if said := r.sweep(t); said != "nothing to sweep\n" {
		t.Errorf("afterwards: %s", said)
	}
}
