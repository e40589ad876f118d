package backend_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-agent/backends/codex"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/sessiontest"

	"github.com/busdk/bus-integration-task/internal/testwait"
	"github.com/busdk/bus-integration-task/worker/backend"
	"github.com/busdk/bus-integration-task/worker/backend/stubagent"
)

func TestMain(m *testing.M) {
	stubagent.Play()
	if err := warmUp(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := 0
	if left := sessiontest.Leaks(func() { code = m.Run() }); left != "" {
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// warmUp starts a process: the first start makes a goroutine that makes all others.
func warmUp() error {
	dir, err := os.MkdirTemp("", "backend-test-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := newSession(filepath.Join(dir, "bin"), "HOME="+dir)
	if err != nil {
		return err
	}
	r, err := b.Start(context.Background(), backend.Attempt{Workdir: dir, Prompt: "hello"}, backend.Listener{})
	if err != nil {
		return err
	}
	<-r.Done()
	return r.Stop(context.Background(), "done").Err
}

// newSession returns a backend of stub agents in the folder bin, the runtimes "codex" and
// "other".
func newSession(bin string, environ ...string) (backend.Session, error) {
	r := new(registry.Registry)
	for _, id := range []string{"codex", "other"} {
		rt := codex.Runtime()
		rt.ID, rt.Executables = id, []string{id}
		if id == "other" {
			rt.Name = "Other CLI"
		}
		if err := errors.Join(r.Register(rt), stubagent.Install(bin, id)); err != nil {
			return backend.Session{}, err
		}
	}
	return backend.Session{Runtime: "codex", Runner: runner.Runner{
		Registry: r, Warn: func(string) {},
		Environ: append(environ, "PATH="+bin, "GORACE=atexit_sleep_ms=0", "BUS_API_TOKEN=of-the-worker"),
	}}, nil
}

// bench is a worktree with a backend of stub agents.
type bench struct {
	t *testing.T
	backend.Session
	workdir string
	home    string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, workdir: t.TempDir(), home: t.TempDir()}
	var err error
	if b.Session, err = newSession(t.TempDir(), "HOME="+b.home, "TMPDIR="+t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return b
}

// prompt returns a prompt with steps of the stub.
func prompt(steps ...string) string { return "stub: " + strings.Join(steps, "\nstub: ") }

// running is an attempt and what it has reported, a line for each call.
type running struct {
	backend.Running
	t *testing.T

	mu      sync.Mutex
	lines   []string
	changed chan struct{}
}

func (b *bench) start(a backend.Attempt) *running {
	b.t.Helper()
	if a.Workdir == "" {
		a.Workdir = b.workdir
	}
	return start(b.t, &b.Session, a)
}

func start(t *testing.T, b backend.Backend, a backend.Attempt) *running {
	t.Helper()
	r := &running{t: t, changed: make(chan struct{})}
	var err error
	if r.Running, err = b.Start(t.Context(), a, r.listener()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Stop(context.Background(), "the test is over") })
	return r
}

func (r *running) listener() backend.Listener {
	note := func(kind string) func(string) {
		return func(text string) { r.note(kind + ": " + strings.ReplaceAll(text, "\n", "⏎")) }
	}
	return backend.Listener{
		Notice: note("notice"), Message: note("message"), Progress: note("progress"), ApprovalClosed: note("closed"),
		Opened: func(c backend.Conversation) {
			r.note("opened: " + c.Runtime + " " + c.Model)
		},
		ApprovalRequested: func(a backend.Approval) {
			r.note(fmt.Sprintf("approval: %s %s %q %q", a.ID, a.Kind, a.Summary, a.Reason))
		},
	}
}

func (r *running) note(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	close(r.changed)
	r.changed = make(chan struct{})
}

// reported returns the lines so far.
func (r *running) reported() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

// await waits for a line.
func (r *running) await(want string) {
	r.t.Helper()
	timeout := time.After(testwait.Limit)
	for {
		r.mu.Lock()
		found, changed := slices.Contains(r.lines, want), r.changed
		r.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			r.t.Fatalf("%q is not reported; so far\n%s", want, strings.Join(r.reported(), "\n"))
		}
	}
}

func (r *running) wantReported(want ...string) {
	r.t.Helper()
	got := r.reported()
	for _, line := range want {
		if !slices.Contains(got, line) {
			r.t.Errorf("%q is not reported; reported\n%s", line, strings.Join(got, "\n"))
		}
	}
}

// finish waits for the outcome and stops the attempt.
func (r *running) finish(want backend.Result) backend.Outcome {
	r.t.Helper()
	select {
	case <-r.Done():
	case <-time.After(testwait.Limit):
		r.t.Fatalf("the attempt is not done; reported\n%s", strings.Join(r.reported(), "\n"))
	}
	o := r.Stop(context.Background(), "done")
	if o.Result != want || (o.Err == nil) != (want == backend.Completed) {
		r.t.Fatalf("the outcome is %q, %v; want %q", o.Result, o.Err, want)
	}
	return o
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
