//go:build acceptance

package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
)

// A sessionCLI is a CLI that supports sessions.
type sessionCLI struct {
	setup setupFunc
	// command returns a tool call that runs a command.
	command func(command string) modeltest.ToolCall
	// needsApproval returns one that Codex, and Claude Code without full access,
	// request approval for.
	needsApproval func(command string) modeltest.ToolCall
	// sleepers is a command that does not end, as in the constant.
	sleepers string
	steers   bool
}

// eachSessionCLI runs a test for each CLI.
func eachSessionCLI(t *testing.T, test func(t *testing.T, cli sessionCLI)) {
	for name, cli := range map[string]sessionCLI{
		"codex": {
			setup: newCodex,
			command: func(c string) modeltest.ToolCall {
				return execCommand(map[string]any{"cmd": c, "yield_time_ms": 60000})
			},
			needsApproval: escalated,
			sleepers:      sleepers,
			steers:        true,
		},
		"claude": {setup: newClaude, command: bash, needsApproval: bash, sleepers: sleepersP},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, cli)
		})
	}
}

func execCommand(arguments map[string]any) modeltest.ToolCall {
	text, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // cannot happen for strings and numbers
	}
	return modeltest.ToolCall{Name: "exec_command", Arguments: string(text)}
}

// escalated returns a tool call that runs a command outside Codex's sandbox.
func escalated(command string) modeltest.ToolCall {
	return execCommand(map[string]any{"cmd": command, "sandbox_permissions": "require_escalated", "justification": "to try"})
}

// A testSession is a session of a fixture.
type testSession struct {
	*fixture
	session *session.Session
	before  snapshot

	mu       sync.Mutex
	events   []agent.Event
	warnings []string
}

// request returns the request for a session, modified by change unless that is nil.
func (w *fixture) request(change func(*agent.Request)) agent.Request {
	r := agent.Request{Runtime: w.agent, Model: w.modelID, Workdir: w.repo, Timeout: w.limit}
	if args := w.codexArgs(); len(args) > 0 {
		r.Args = args[1:]
	}
	if change != nil {
		change(&r)
	}
	return r
}

// startSession starts a session, which is stopped at the end of the test.
func (w *fixture) startSession(o session.Options, change func(*agent.Request)) *testSession {
	w.t.Helper()
	d, err := w.tryStartSession(o, change)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *fixture) tryStartSession(o session.Options, change func(*agent.Request)) (*testSession, error) {
	w.t.Helper()
	d := &testSession{fixture: w, before: w.snapshot()}
	r := runner.Runner{Environ: w.environ(), Warn: func(line string) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.warnings = append(d.warnings, line)
	}}
	events := o.Events
	o.Events = func(e *agent.Event) error {
		d.mu.Lock()
		d.events = append(d.events, *e.Clone())
		d.mu.Unlock()
		if events != nil {
			return events(e)
		}
		return nil
	}
	var err error
	if d.session, err = r.StartSession(w.t.Context(), w.request(change), o); err != nil {
		return d, err
	}
	w.t.Cleanup(func() { d.session.Stop(context.Background(), "the test is over") })
	return d, nil
}

// eventLog returns the events so far.
func (d *testSession) eventLog() []agent.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.events)
}

// warningLog returns the warnings so far, one per line.
func (d *testSession) warningLog() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.warnings, "\n")
}

// wait waits for the end of a turn.
func (d *testSession) wait(turn *session.Turn) (agent.Result, error) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), d.limit)
	defer cancel()
	r, err := turn.Wait(ctx)
	if ctx.Err() != nil {
		d.t.Fatalf("the turn does not end; the events so far: %+v", d.eventLog())
	}
	return r, err
}

// send sends text and waits for the end of its turn.
func (d *testSession) send(text string) (agent.Result, error) {
	d.t.Helper()
	return d.wait(d.session.Send(session.Message{Text: text}))
}

// sendWant sends text and fails the test unless the answer is want.
func (d *testSession) sendWant(text, want string) agent.Result {
	d.t.Helper()
	r, err := d.send(text)
	if err != nil || r.Text != want {
		d.t.Fatalf("the answer to %q is %q, %v; want %q", clip(text), r.Text, err, want)
	}
	return r
}

// stop stops the session and checks that it leaves nothing behind.
func (d *testSession) stop() {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), d.limit)
	defer cancel()
	d.session.Stop(ctx, "enough")
	if d.session.State() != session.StateStopped {
		d.t.Errorf("state %s after the end", d.session.State())
	}
	d.checkNothingLeft(d.before)
}

// processes returns the command lines of the processes of the fixture by process ID.
func (w *fixture) processes() map[int]string {
	w.t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(environs) == 0 && runtime.GOOS == "linux" {
		w.t.Fatalf("%d processes, %v", len(environs), err)
	}
	found := map[int]string{}
	for _, path := range environs {
		data, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(data), "\x00"), "HOME="+w.home) {
			continue // ended, of another user, or of another fixture
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		id, notID := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && notID == nil && len(line) > 0 { // a zombie has no command line
			found[id] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return found
}

// process returns the ID of the agent's process, the only child of this process that
// belongs to the fixture.
func (w *fixture) process() int {
	w.t.Helper()
	if runtime.GOOS != "linux" {
		w.t.Skip("needs /proc")
	}
	for id := range w.processes() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ") // the name may contain blanks
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			return id
		}
	}
	w.t.Fatal("no process of the agent")
	return 0
}

// kill sends a signal to the agent and waits for the end of the session.
func (d *testSession) kill(signal syscall.Signal) {
	d.t.Helper()
	if err := syscall.Kill(d.process(), signal); err != nil {
		d.t.Fatal(err)
	}
	testwait.Receive(d.t, "the session ends with its agent", d.session.Done())
	d.allowPartialState()
}

// allowPartialState permits temporary files in the home that Claude Code leaves behind
// if it is killed or exits early.
func (w *fixture) allowPartialState() {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.home, ".claude.json.*"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range names {
		w.keptInHome = append(w.keptInHome, filepath.Base(name))
	}
}

// awaitNone waits until no process of the fixture has part in its command line.
func (w *fixture) awaitNone(part string) {
	w.t.Helper()
	testwait.Until(w.t, "no process with "+part, func() (left []string, ended bool) {
		for id, line := range w.processes() {
			if strings.Contains(line, part) {
				left = append(left, fmt.Sprint(id, " ", line))
			}
		}
		return left, len(left) == 0
	})
}

// conversation returns the messages of user and model in a request, without those that
// the CLI added.
func conversation(r *modeltest.Request) []string {
	var said []string
	for _, m := range r.Messages() {
		for _, text := range m.Texts {
			if (m.Role == "assistant" || m.Role == "user") && !strings.Contains(text, "<") {
				said = append(said, m.Role+": "+text)
			}
		}
	}
	return said
}

func checkConversation(t *testing.T, r *modeltest.Request, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, conversation(r)); diff != "" {
		t.Errorf("conversation (-want +got):\n%s", diff)
	}
}

// wantErrorIs fails the test unless errors.Is(err, kind).
func wantErrorIs(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error %v, want %v", err, kind)
	}
}
