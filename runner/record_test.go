package runner_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// recorder records its calls.
type recorder struct {
	add     agent.Recording // what Record returns, with failures
	refuse  error
	mu      sync.Mutex
	run     agent.Recordable
	said    []string
	process agent.Process
	stdout  bytes.Buffer
	stderr  bytes.Buffer
	ends    int
	result  agent.Result
	err     error
}

func (r *recorder) Record(_ context.Context, run agent.Recordable) (agent.Recording, error) {
	r.run = run
	recording := r.add
	recording.RunID = "r1"
	recording.Started = func(p agent.Process) { r.process = p }
	if recording.Stdout == nil {
		recording.Stdout = &r.stdout
	}
	recording.Stderr = &r.stderr
	if recording.Events == nil {
		recording.Events = func(e *agent.Event) error { r.note(string(e.Kind) + " " + e.Text); return nil }
	}
	recording.Message = func(m agent.UserMessage) error { r.note("message " + m.Text); return nil }
	end := recording.End
	recording.End = func(ctx context.Context, result agent.Result, err error) error {
		r.ends++
		r.result, r.err = result, err
		if end != nil {
			return end(ctx, result, err)
		}
		return nil
	}
	return recording, r.refuse
}

func (r *recorder) note(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, line)
}

func (r *recorder) notified() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.said) > 0
}

func TestRecorderGetsARun(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	r := &recorder{add: agent.Recording{Env: []string{"ADDED=yes", "FAKE_SET=no", "MY_API_KEY"}, Prompt: "another prompt"}}
	b.Recorder = r
	result, err := b.Run(t.Context(), b.request("stderr hush", "say session:s1 m1", "stdin", "env ADDED", "env FAKE_SET", "env MY_API_KEY", "say usage:3", "say ok:"), agent.Output{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"session_started ", "text another prompt", "text ADDED=yes true", "text FAKE_SET=by runtime true", "text MY_API_KEY= false", "usage ", "result "}
	if !slices.Equal(r.said, want) {
		t.Errorf("events %q, want %q", r.said, want)
	}
	switch {
	case result.RunID != "r1" || r.ends != 1 || r.err != nil || r.result.RunID != "r1" || r.result.SessionID != "s1" || r.result.ExitCode != 0,
		r.process.PID <= 0 || r.process.Identity == "",
		r.stderr.String() != "hush\n" || !strings.HasPrefix(r.stdout.String(), "session:s1 m1\n"),
		r.run.Session || r.run.Start.Runtime != "alpha" || r.run.Request.Prompt != "do it" || !slices.Contains(r.run.Environ, "MY_API_KEY=sk-very-secret"):
		t.Errorf("it got\n%+v\n%+v", r.result, r.run)
	}
}

// A record has the verdict of the caller's check, and what that made of the answer.
func TestRecorderGetsTheCheck(t *testing.T) {
	t.Parallel()
	refused := errors.New("not what was asked for")
	for _, want := range []error{nil, refused} {
		b := newBench(t, "alpha")
		r := &recorder{}
		b.Recorder = r
		out := agent.Output{Check: func(_ context.Context, result *agent.Result) error {
			if result.RunID != "r1" || r.ends != 0 {
				t.Errorf("run %q is checked after %d ends", result.RunID, r.ends)
			}
			result.Text = "checked " + result.Text
			return want
		}}
		result, err := b.Run(t.Context(), b.request("say text:it", "say ok:"), out)
		if !errors.Is(err, want) || want != nil && !errors.Is(err, agent.ErrAgent) || result.Text != "checked it" {
			t.Errorf("%q, %v, want %v", result.Text, err, want)
		}
		if r.ends != 1 || !errors.Is(r.err, want) || r.result.Text != result.Text {
			t.Errorf("recorded %d times: %q, %v", r.ends, r.result.Text, r.err)
		}
		// A run that failed is not checked.
		out.Check = func(context.Context, *agent.Result) error { t.Error("it is checked"); return nil }
		if _, err := b.Run(t.Context(), b.request("exit 1"), out); err == nil {
			t.Error("no error")
		}
	}
}

func TestRequestsEnvironmentWinsOverTheRecorders(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	b.Recorder = &recorder{add: agent.Recording{Env: []string{"MINE"}}}
	req := b.request("env MINE", "say ok:")
	req.Env = append(req.Env, "MINE=kept")
	if result, err := b.Run(t.Context(), req, agent.Output{}); err != nil || result.Text != "MINE=kept true" {
		t.Errorf("%q, %v", result.Text, err)
	}
}

func TestRecorderThatFails(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	for name, c := range map[string]struct {
		recorder *recorder
		started  bool
		ends     int
	}{
		"refuses":            {&recorder{refuse: full}, false, 0},
		"loses an event":     {&recorder{add: agent.Recording{Events: func(*agent.Event) error { return full }}}, true, 1},
		"loses output":       {&recorder{add: agent.Recording{Stdout: writerFunc(func([]byte) (int, error) { return 0, full })}}, true, 1},
		"is not whole":       {&recorder{add: agent.Recording{End: func(context.Context, agent.Result, error) error { return full }}}, true, 1},
		"asks for the moon":  {&recorder{add: agent.Recording{Prompt: strings.Repeat("x", 200_000)}}, false, 1},
		"refuses with usage": {&recorder{refuse: agent.Usagef("%w", full)}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "alpha")
			b.Recorder = c.recorder
			started := false
			req := b.request("say text:x", "say ok:")
			out := agent.Output{Started: func(agent.Start) { started = true }}
			_, err := b.Run(t.Context(), req, out)
			if err == nil || !errors.Is(err, full) && name != "asks for the moon" || started != c.started || c.recorder.ends != c.ends {
				t.Errorf("error %v, started %t, ended %d times", err, started, c.recorder.ends)
			}
			if e, ok := errors.AsType[*agent.Error](err); !ok || e.Runtime != "alpha" {
				t.Errorf("error %#v", err)
			}
		})
	}
}

func TestRecordEndsThoughACallbackPanics(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	r := &recorder{}
	b.Recorder = r
	req := b.request("say text:x", "say ok:")
	out := agent.Output{Events: func(*agent.Event) error { panic("mine") }}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = b.Run(t.Context(), req, out)
	}()
	if r.ends != 1 || !errors.Is(r.err, agent.ErrCanceled) {
		t.Errorf("ended %d times with %v", r.ends, r.err)
	}
}

func TestSeveralRecorders(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	first, second := &recorder{add: agent.Recording{Prompt: "changed", Env: []string{"A=1"}}}, &recorder{add: agent.Recording{Env: []string{"B=2"}}}
	b.Recorder = agent.Recorders(nil, first, second)
	result, err := b.Run(t.Context(), b.request("stdin", "env A", "env B", "say ok:"), agent.Output{})
	if err != nil || result.RunID != "r1" || second.run.Request.Prompt != "changed" {
		t.Fatalf("%+v, %v", result, err)
	}
	for _, r := range []*recorder{first, second} {
		if !slices.Equal(r.said, []string{"text changed", "text A=1 true", "text B=2 true", "result "}) || r.ends != 1 || r.process.PID == 0 || r.stdout.Len() == 0 {
			t.Errorf("one got %q", r.said)
		}
	}
	// If one recorder fails, the recordings of the others are ended.
	first.ends = 0
	b.Recorder = agent.Recorders(first, &recorder{refuse: errors.New("full")})
	if _, err := b.Run(t.Context(), b.request("say ok:"), agent.Output{}); err == nil || first.ends != 1 {
		t.Errorf("%v, ended %d times", err, first.ends)
	}
	if agent.Recorders() != nil || agent.Recorders(nil) != nil || agent.Recorders(nil, first) != agent.Recorder(first) {
		t.Error("recorders of none, or of one")
	}
}

func TestRecorderGetsASession(t *testing.T) {
	t.Parallel()
	b := conversing(t)
	r := &recorder{}
	b.Recorder = r
	s, err := b.StartSession(t.Context(), b.sessionRequest("stderr hush", "say session:s1 m1", "converse"), session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if _, err := s.Send(session.Message{Text: text}).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.Stop(t.Context(), "enough")
	if r.ends != 1 || r.err != nil || r.result.Text != "two" || r.result.RunID != "r1" || !r.run.Session || r.process.PID == 0 ||
		r.stderr.String() != "hush\n" || !strings.Contains(r.stdout.String(), "text:two\n") {
		t.Errorf("ended %d times: %+v, %v", r.ends, r.result, r.err)
	}
	for _, want := range []string{"message one", "text one", "message two", "text two"} {
		if !slices.Contains(r.said, want) {
			t.Errorf("%q is missing in %q", want, r.said)
		}
	}
}

// lateEngine returns from Send when the agent has answered.
type lateEngine struct {
	lineEngine
	answered chan struct{}
}

type lateSink struct {
	engine.Sink
	answered chan struct{}
}

func (s lateSink) Event(e *agent.Event) {
	over := e.Kind == agent.KindResult
	s.Sink.Event(e)
	if over {
		s.answered <- struct{}{}
	}
}

func (e *lateEngine) Open(ctx context.Context, t engine.Transport, start engine.Start, sink engine.Sink) (engine.Info, error) {
	e.answered = make(chan struct{}, 10)
	return e.lineEngine.Open(ctx, t, start, lateSink{sink, e.answered})
}

func (e *lateEngine) Send(ctx context.Context, text string) error {
	err := e.lineEngine.Send(ctx, text)
	<-e.answered
	return err
}

// An approval request comes before its answer, however quick that is.
func TestMessageIsRecordedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	b := conversing(t)
	rt, _, err := b.Registry.ParseToken("talker")
	if err != nil {
		t.Fatal(err)
	}
	held := *rt.Session
	held.Engine = func(registry.Invocation) engine.Engine { return new(lateEngine) }
	rt.ID, rt.Session = "late", &held
	if err := b.Registry.Register(rt); err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	b.Recorder = r
	req := b.sessionRequest("say session:s1 m1", "converse")
	req.Runtime = "late"
	s, err := b.StartSession(t.Context(), req, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two"} {
		if _, err := s.Send(session.Message{Text: text}).Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.Stop(t.Context(), "")
	want := []string{"session_started ", "message one", "text one", "result ", "message two", "text two", "result "}
	if !slices.Equal(r.said, want) {
		t.Errorf("recorded %q, want %q", r.said, want)
	}
}

// What a session was left with is its last good answer.
func TestSessionThatIsLeftHasNotFailed(t *testing.T) {
	t.Parallel()
	b := conversing(t)
	r := &recorder{}
	b.Recorder = r
	s, err := b.StartSession(t.Context(), b.sessionRequest("say session:s1", "converse"), session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(session.Message{Text: "good"}).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(session.Message{Text: "fail"}).Wait(t.Context()); !errors.Is(err, agent.ErrQuota) {
		t.Fatal(err)
	}
	s.Stop(t.Context(), "enough")
	if r.err != nil || r.result.Text != "good" {
		t.Errorf("ended with %q, %v", r.result.Text, r.err)
	}
}

func TestRecordOfASessionThatFails(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	for name, c := range map[string]struct {
		add    agent.Recording
		script []string
		code   int
	}{
		"it dies":            {script: []string{"say session:s1", "converse"}, code: 3},
		"it is not opened":   {script: []string{"exit 4"}, code: 4},
		"it is not recorded": {agent.Recording{Events: func(*agent.Event) error { return full }}, []string{"say session:s1", "converse"}, -2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := conversing(t)
			r := &recorder{add: c.add}
			b.Recorder = r
			s, err := b.StartSession(t.Context(), b.sessionRequest(c.script...), session.Options{})
			if err == nil {
				if c.code == 3 {
					_, err = s.Send(session.Message{Text: "die"}).Wait(t.Context())
				} else {
					err = full
				}
				<-s.Done()
			}
			if err == nil || r.ends != 1 || r.err == nil || c.code != -2 && r.result.ExitCode != c.code {
				t.Errorf("%v; ended %d times: %+v, %v", err, r.ends, r.result, r.err)
			}
		})
	}
}

func TestRecorderGetsATerminal(t *testing.T) {
	t.Parallel()
	lost := errors.New("the terminal is gone")
	for name, c := range map[string]struct {
		open, closed error
	}{"it ends": {}, "it fails": {closed: lost}, "it is not opened": {open: lost}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "alpha")
			if err := b.Registry.Register(shownRuntime(func(string) {})); err != nil {
				t.Fatal(err)
			}
			r := &recorder{}
			b.Recorder = r
			h := &held{got: make(chan string, 1), done: make(chan struct{})}
			b.OpenTerminal = func(_ context.Context, p engine.Program, start engine.Start) (engine.Engine, engine.Process, error) {
				if c.open != nil {
					return nil, nil, c.open
				}
				h.over = func() {
					p.Ended(0)
					close(h.done)
					h.sink.Closed(c.closed)
				}
				return h, h, nil
			}
			req := b.request()
			req.Runtime, req.Prompt = "shown", "hello"
			s, err := b.StartSession(t.Context(), req, session.Options{Mode: session.ModeTmux, CloseGrace: time.Millisecond})
			if err == nil {
				testwait.Receive(t, "the message", h.got)
				testwait.Until(t, "its delivery", func() (session.State, bool) {
					return s.State(), s.State() == session.StateRunning && r.notified()
				})
				s.Stop(t.Context(), "done")
			}
			failed := c.open != nil || c.closed != nil
			if (err != nil) != (c.open != nil) || r.ends != 1 || (r.err != nil) != failed || r.result.SessionID != "s-1" || !r.run.Session {
				t.Errorf("%v; ended %d times: %+v, %v", err, r.ends, r.result, r.err)
			}
			if want := []string{"message hello"}; c.open == nil && !slices.Equal(r.said, want) {
				t.Errorf("it got %q", r.said)
			}
		})
	}
}

type panickyRecorder struct{}

func (panickyRecorder) Record(context.Context, agent.Recordable) (agent.Recording, error) {
	panic("mine")
}

func TestRecorderThatPanicsLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(b *bench){
		"run": func(b *bench) { _, _ = b.Run(context.Background(), b.request("say ok:"), agent.Output{}) },
		"session": func(b *bench) {
			_, _ = b.StartSession(context.Background(), b.sessionRequest("converse"), session.Options{})
		},
	} {
		b := conversing(t)
		b.Recorder = panickyRecorder{}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			start(b)
		}()
		if left := b.leftBehind(t); len(left) > 0 {
			t.Errorf("%s: left behind %q", name, left)
		}
	}
}

// The version can be requested after the private home of the run was removed. The CLI
// must then write neither to that path nor to the user's home.
func TestRecorderAsksForTheVersion(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	home := t.TempDir()
	state := filepath.Join(home, "state")
	b.Environ = append(b.Environ, "FAKE_HOME="+home)
	var version string
	r := new(recorder)
	r.add.End = func(ctx context.Context, _ agent.Result, _ error) error {
		err := os.Remove(state) // of the run itself
		if err == nil {
			version, err = r.run.Version(ctx)
		}
		return err
	}
	b.Recorder = r
	if _, err := b.Run(t.Context(), b.request("state", "say ok:1.2.3"), agent.Output{}); err != nil || version != "1.2.3" {
		t.Errorf("version %q, %v", version, err)
	}
	if _, err := os.Lstat(state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("asking for the version wrote into the home: %v", err)
	}
}
