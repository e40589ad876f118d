package soak

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/busdk/bus-agent/internal/process"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/control"
	"github.com/busdk/bus-agent/session/sessiontest"
)

// speaker is the runtime that the stub holds sessions as.
const speaker = "claude"

// Sessions that begin and end one after the other leave nothing in the process
// that holds them: no memory, no descriptor, no goroutine, no file.
func TestSessionsOneByOne(t *testing.T) {
	atOnce(t)
	box := newSandbox(t)
	install(t, box)
	events, err := control.OpenFile(box.path("events"))
	if err != nil {
		t.Fatal(err)
	}
	m := &control.Manager{
		Runner: &runner.Runner{
			Environ: []string{"PATH=" + box.path("bin"), "HOME=" + box.path("home"), "TMPDIR=" + box.path("tmp")},
			Warn:    func(line string) { t.Error("warning:", line) },
		},
		Store: control.NewStore(box.path("state")),
		Hooks: control.NewHooks(func(line string) { t.Error(line) }, events),
	}
	count := size(2_000, 5)
	if err := brief(t, m, box.path("work"), "first"); err != nil { // makes what the process keeps
		t.Fatal(err)
	}
	var before, after resources
	begun := time.Now()
	left := sessiontest.Leaks(func() {
		for i := range count {
			if i == count/10 { // what is made once exists now
				before = measure()
			}
			if err := brief(t, m, box.path("work"), fmt.Sprintf("message %d", i)); err != nil {
				t.Errorf("session %d: %v", i, err)
				return
			}
		}
		after = measure()
		m.Hooks.Close(t.Context())
	})
	took := time.Since(begun)
	if left != "" {
		t.Errorf("goroutines are left:\n%s", left)
	}
	if large { // otherwise other tests have a share
		fmt.Fprintf(os.Stdout, "%-36s %d sessions %8.2f s %8.2f ms each; heap %d to %d KiB, descriptors %d to %d\n", "sessions",
			count, took.Seconds(), took.Seconds()*1000/float64(count), before.heap>>10, after.heap>>10, before.descriptors, after.descriptors)
		if after.heap > before.heap+1<<20 {
			t.Errorf("the heap has grown from %d to %d bytes", before.heap, after.heap)
		}
		if after.descriptors > before.descriptors {
			t.Errorf("the descriptors have grown from %d to %d", before.descriptors, after.descriptors)
		}
	}
	if text, err := os.ReadFile(box.path("events")); err != nil || strings.Count(string(text), "\n") != 3*count+3 {
		t.Errorf("hooks were notified %d times, want %d; %v", strings.Count(string(text), "\n"), 3*count+3, err)
	}
	if ended, err := m.Store.Prune(t.Context(), time.Now()); err != nil || len(ended) != count+1 {
		t.Errorf("%d entries, %v", len(ended), err)
	}
	for _, dir := range []string{"work", "tmp", "home", "state"} {
		nothingIn(t, box.path(dir), ".lock")
	}
}

// brief holds a session of one turn.
func brief(t *testing.T, m *control.Manager, workdir, text string) error {
	h, err := m.Start(t.Context(), control.StartOptions{Settings: control.Settings{Runtime: speaker, Workdir: workdir}})
	if err != nil {
		return err
	}
	turn, err := m.Send(h, control.Message{Text: text})
	if err != nil {
		return err
	}
	result, err := turn.Wait(t.Context())
	if err == nil && result.Text != text {
		err = fmt.Errorf("the answer is %q, want %q", result.Text, text)
	}
	return errors.Join(err, m.Stop(t.Context(), h, "done"))
}

// Sessions of the program leave no process, no socket and a bounded folder.
func TestOwnersOneByOne(t *testing.T) {
	atOnce(t)
	box := newSandbox(t)
	install(t, box)
	state := box.path("home/.local/state/bus-agent/sessions")
	count := size(150, 2) // more than are remembered
	begun := time.Now()
	var owners []string
	for i := range count {
		name := fmt.Sprintf("s%d", i)
		bus(t, box, "session", "start", "--agent", speaker, "--name", name)
		if out := bus(t, box, "session", "send", name, "hello"); out != "hello\n" {
			t.Fatalf("the answer is %q", out)
		}
		owners = append(owners, owner(t, state))
		bus(t, box, "session", "stop", name)
	}
	if large {
		took := time.Since(begun)
		fmt.Fprintf(os.Stdout, "%-36s %d sessions %8.2f s %8.2f ms each\n", "owners", count, took.Seconds(), took.Seconds()*1000/float64(count))
	}
	for _, identity := range owners {
		if process.LifeOf(identity) == process.Alive && !endsSoon(identity) {
			t.Errorf("owner %s is alive", identity)
		}
	}
	if out := bus(t, box, "session", "list"); out != "" {
		t.Errorf("listed: %s", out)
	}
	entries, err := os.ReadDir(state)
	if err != nil {
		t.Fatal(err)
	}
	if most := 2*min(count, 101) + 1; len(entries) > most { // a folder and a file each, and the lock
		t.Errorf("%d files and folders are left, want %d", len(entries), most)
	}
	for _, dir := range []string{"work", "tmp"} {
		nothingIn(t, box.path(dir))
	}
}

// owner returns the identity of the owner of the only running session.
func owner(t *testing.T, state string) string {
	t.Helper()
	list, _, err := control.NewStore(state).List(control.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if !e.State.Ended() {
			return e.Owner
		}
	}
	t.Fatal("no session is running")
	return ""
}

// endsSoon waits for the end of a process that has nothing to do any more.
func endsSoon(identity string) bool {
	return testwait.Poll(func() bool { return process.LifeOf(identity) != process.Alive })
}

// bus runs the program, which must succeed, and returns what it prints.
func bus(t *testing.T, box *sandbox, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), box.path("bin/bus-agent"), args...)
	cmd.Dir, cmd.Env = box.path("work"), append(box.environ(), "TMPDIR="+box.path("tmp"))
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%q: %v\n%s", args, err, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// install makes the stub the agent of sessions.
func install(t *testing.T, box *sandbox) {
	t.Helper()
	if err := os.Symlink(stub(t), box.path("bin/"+speaker)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(box.path("tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// resources are what a process has.
type resources struct {
	heap        uint64
	descriptors int
}

func measure() resources {
	runtime.GC()
	runtime.GC() // finalizers have run
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open := 0
	for fd := range 1 << 12 {
		var stat syscall.Stat_t
		if syscall.Fstat(fd, &stat) == nil {
			open++
		}
	}
	return resources{m.HeapAlloc, open}
}

// nothingIn checks that a directory has no files but those named.
func nothingIn(t *testing.T, dir string, but ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, name := range but {
			if d.Name() == name {
				return nil
			}
		}
		t.Errorf("left behind: %s", path)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
