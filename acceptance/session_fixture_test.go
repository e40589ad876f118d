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
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
)

// A sessionCLI is a CLI that holds sessions.
type sessionCLI struct {
	setup setupFunc
	// command is a call of a tool that runs a command.
	command func(command string) modeltest.ToolCall
	// asking is one that Codex asks for, and Claude Code without full access.
	needsApproval func(command string) modeltest.ToolCall
	// sleepers is a command that runs on, beside one in a session of its own.
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
		panic(err) // strings and numbers cannot fail
	}
	return modeltest.ToolCall{Name: "exec_command", Arguments: string(text)}
}

// escalated is a command that is to run outside of Codex's sandbox.
func escalated(command string) modeltest.ToolCall {
	return execCommand(map[string]any{"cmd": command, "sandbox_permissions": "require_escalated", "justification": "to try"})
}

// A testSession is one session in a world.
type testSession struct {
	*fixture
	session *session.Session
	before  snapshot

	mu       sync.Mutex
	events   []agent.Event
	warnings []string
}

// request is what a session of the world asks for; change may change it.
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

// converse opens a session, which ends with the test at the latest.
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

// said returns the events so far.
func (d *testSession) eventLog() []agent.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.events)
}

// warned returns the warnings so far, one a line.
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

// tell says text and waits for the end of its turn.
func (d *testSession) send(text string) (agent.Result, error) {
	d.t.Helper()
	return d.wait(d.session.Send(session.Message{Text: text}))
}

// hears says text and fails the test unless want is the answer.
func (d *testSession) sendWant(text, want string) agent.Result {
	d.t.Helper()
	r, err := d.send(text)
	if err != nil || r.Text != want {
		d.t.Fatalf("the answer to %q is %q, %v; want %q", clip(text), r.Text, err, want)
	}
	return r
}

// stop ends the session and checks what it leaves behind.
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

// processes returns the processes of the world by ID, with their command lines.
func (w *fixture) processes() map[int]string {
	w.t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		w.t.Fatal(err)
	}
	found := map[int]string{}
	for _, path := range environs {
		data, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(data), "\x00"), "HOME="+w.home) {
			continue // gone, another user's, or of another world
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		id, notID := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && notID == nil && len(line) > 0 { // others have ended
			found[id] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return found
}

// process returns the ID of the agent's process, the only child of this one in
// the world.
func (w *fixture) process() int {
	w.t.Helper()
	if runtime.GOOS != "linux" {
		w.t.Skip("only Linux shows whose process it is")
	}
	for id := range w.processes() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ") // the name may hold blanks
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			return id
		}
	}
	w.t.Fatal("no process of the agent")
	return 0
}

// kill ends the agent with a signal and waits until nothing is left of it.
func (d *testSession) kill(signal syscall.Signal) {
	d.t.Helper()
	if err := syscall.Kill(d.process(), signal); err != nil {
		d.t.Fatal(err)
	}
	select {
	case <-d.session.Done():
	case <-time.After(d.limit):
		d.t.Fatal("the session does not end with its agent")
	}
	d.allowPartialState()
}

// allowPartialState takes what Claude Code was about to write for its own: it leaves
// that behind when it is killed, or gives up early.
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

// awaitNone waits until no process of the world has part in its command line.
func (w *fixture) awaitNone(part string) {
	w.t.Helper()
	limit := time.Now().Add(20 * time.Second)
	for {
		var left []string
		for id, line := range w.processes() {
			if strings.Contains(line, part) {
				left = append(left, fmt.Sprint(id, " ", line))
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(limit) {
			w.t.Fatalf("still running: %q", left)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// spoken returns what user and model said in a request, without what the CLI put
// beside the messages.
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

// wantErrorIs fails the test unless err is an error of a kind.
func wantErrorIs(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error %v, want %v", err, kind)
	}
}
