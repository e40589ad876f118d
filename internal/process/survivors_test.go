package process

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A restless agent starts a descendant of one kind that holds the file alive
// open for writing while one of its processes lives, except where it is a
// daemon, and writes an id into the file id.
type restless struct {
	clears  bool // its environment, so that only Linux finds it
	forks   bool // by system calls of Linux
	descend func(dir string) []step
}

// restlessAgents are the kinds of descendants that nothing may be left of.
var restlessAgents = map[string]restless{
	"fork": {descend: func(dir string) []step {
		return []step{{Do: "spawn", Child: &child{Output: dir + "/alive", Steps: staying(dir)}}}
	}},
	"session": {descend: func(dir string) []step {
		return []step{{Do: "spawn", Child: &child{Output: dir + "/alive", Session: true, Steps: staying(dir)}}}
	}},
	"double fork": {descend: func(dir string) []step {
		return twice(dir, child{}, child{Output: dir + "/alive"})
	}},
	"daemon": {descend: func(dir string) []step {
		return twice(dir, child{Session: true}, child{Daemon: true})
	}},
	"deaf to SIGTERM": {descend: func(dir string) []step {
		return []step{{Do: "spawn", Child: &child{Output: dir + "/alive", Session: true, Steps: append([]step{{Do: "ignore"}}, staying(dir)...)}}}
	}},
	"forking on": {forks: true, descend: func(dir string) []step {
		return []step{{Do: "spawn", Child: &child{Output: dir + "/alive", Session: true, Steps: []step{
			{Do: "ignore"}, {Do: "report", Text: dir + "/id"}, {Do: "pulse", N: 400},
		}}}}
	}},
	"double fork without environment": {clears: true, descend: func(dir string) []step {
		return twice(dir, child{Session: true}, child{Cleared: true, Session: true, Output: dir + "/alive"})
	}},
}

func staying(dir string) []step { return []step{{Do: "report", Text: dir + "/id"}, {Do: "hang"}} }

// twice starts last by way of between, which ends at once. last reports when
// between is gone.
func twice(dir string, between, last child) []step {
	last.Steps = append([]step{{Do: "outlive", Text: dir + "/between"}}, staying(dir)...)
	between.Steps = []step{{Do: "report", Text: dir + "/between"}, {Do: "spawn", Child: &last}}
	return []step{{Do: "marked"}, {Do: "spawn", Child: &between}}
}

// skip skips what the system cannot do.
func (r restless) skip(t *testing.T) {
	if runtime.GOOS != "linux" && (r.clears || r.forks) {
		t.Skip("needs what only Linux has")
	}
}

// A witness shows whether anything of a restless agent's descendant lives.
type witness struct {
	dir  string
	held int // the reading end of the file alive
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{dir: t.TempDir()}
	fifo := filepath.Join(w.dir, "alive")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.held, err = unix.Open(fifo, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(w.held) })
	return w
}

// check fails the test if something lives.
func (w *witness) check(t *testing.T) {
	t.Helper()
	if readID(w.dir + "/id").alive() {
		t.Error("the descendant is alive")
	}
	// The file ends when no process has it open for writing.
	if n, err := unix.Read(w.held, make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("something that it started is alive: %d, %v", n, err)
	}
}

// Bystanders are processes that a run has nothing to do with, but that live
// where it works: of the same executable, children of the same process; with
// nothing in common but the directory; started by another run.
type bystanders struct {
	ids  map[string]id
	stop func()
}

func newBystanders(t *testing.T, dir string) *bystanders {
	t.Helper()
	notes := t.TempDir()
	sibling := fake([]step{{Do: "report", Text: notes + "/sibling"}, {Do: "hang"}})
	sibling.Dir = dir
	stranger := fake([]step{{Do: "report", Text: notes + "/stranger"}, {Do: "hang"}})
	stranger.Dir, stranger.Env, stranger.SysProcAttr = dir, []string{}, &syscall.SysProcAttr{Setsid: true}
	other := agent(t,
		step{Do: "report", Text: notes + "/leader of another run"},
		step{Do: "spawn", Child: &child{Session: true, Steps: []step{{Do: "report", Text: notes + "/member of another run"}, {Do: "hang"}}}},
		step{Do: "hang"})
	other.Dir, other.Settle = dir, -1
	if err := errors.Join(sibling.Start(), stranger.Start()); err != nil {
		t.Fatal(err)
	}
	p, err := Start(context.WithoutCancel(t.Context()), other)
	if err != nil {
		t.Fatal(err)
	}
	b := &bystanders{ids: map[string]id{}, stop: func() {
		p.Stop()
		p.Wait()
		sibling.Process.Kill()
		sibling.Wait()
		stranger.Process.Kill()
		stranger.Wait()
	}}
	t.Cleanup(b.stop)
	for _, name := range []string{"sibling", "stranger", "leader of another run", "member of another run"} {
		b.ids[name] = reported(t, filepath.Join(notes, name))
	}
	return b
}

func (b *bystanders) check(t *testing.T) {
	t.Helper()
	for name, id := range b.ids {
		if !id.alive() {
			t.Errorf("a bystander was ended: %s", name)
		}
	}
}

// endings are how a run ends, as the last steps of its agent, and what ends it
// from outside.
var endings = map[string]struct {
	last    []step
	timeout bool
	cancel  bool
	want    Exit // but for Swept
}{
	"timeout": {last: []step{{Do: "hang"}}, timeout: true, want: Exit{Code: -1, Signal: "SIGTERM", Stopped: true}},
	"cancel":  {last: []step{{Do: "hang"}}, cancel: true, want: Exit{Code: -1, Signal: "SIGTERM", Stopped: true}},
	"exit":    {last: []step{{Do: "exit", N: 0}}, want: Exit{Code: 0}},
	"crash":   {last: []step{{Do: "signal", N: int(syscall.SIGKILL)}}, want: Exit{Code: -1, Signal: "SIGKILL"}},
}

// However a run ends, nothing of it is left and nothing else is touched. All runs
// are in one directory at once.
func TestNoSurvivors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	innocent := newBystanders(t, dir)
	var all sync.WaitGroup
	for ending, e := range endings {
		for kind, r := range restlessAgents {
			all.Go(func() {
				// Separate subtests would not run at once.
				t.Run(fmt.Sprintf("%s/%s", ending, kind), func(t *testing.T) {
					defer innocent.check(t)
					r.skip(t)
					see := newWitness(t)
					s := agent(t, append(append(r.descend(see.dir), step{Do: "await", Text: see.dir + "/id"}), e.last...)...)
					s.Dir, s.Settle = dir, 20*time.Millisecond
					ctx, cancel := context.WithCancelCause(soon(t))
					defer cancel(nil)
					p, err := Start(ctx, s)
					if err != nil {
						t.Fatal(err)
					}
					reported(t, see.dir+"/id")
					switch {
					case e.timeout:
						over, cancelTimeout := context.WithTimeoutCause(ctx, time.Millisecond, context.DeadlineExceeded)
						defer cancelTimeout()
						context.AfterFunc(over, func() { cancel(context.Cause(over)) })
					case e.cancel:
						cancel(errors.New("enough"))
					}
					exit, err := p.Wait()
					want := e.want
					want.Swept = exit.Swept
					if err != nil || exit != want {
						t.Errorf("got %+v, %v, want %+v", exit, err, want)
					}
					see.check(t)
				})
			})
		}
	}
	all.Wait()
	innocent.check(t)
}
