package runner_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/testwait"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// lineEngine sends messages as lines. The agent sends the first one.
type lineEngine struct {
	greeting chan struct{}
	input    io.WriteCloser
}

func (e *lineEngine) Open(ctx context.Context, t engine.Transport, start engine.Start, sink engine.Sink) (engine.Info, error) {
	e.input, e.greeting = t.Input, make(chan struct{})
	first := true
	stream := formatters.NewStream(fakeDecoder{}, func(event *agent.Event) error {
		sink.Event(event)
		if first {
			first = false
			close(e.greeting)
		}
		return nil
	})
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(stream, t.Output)
		stream.Close()
		ended <- err
		sink.Closed(err)
	}()
	select {
	case <-e.greeting:
		return engine.Info{SessionID: "s-" + start.Resume, Model: start.Model}, nil
	case err := <-ended:
		return engine.Info{}, fmt.Errorf("no greeting: %w", err)
	case <-ctx.Done():
		return engine.Info{}, context.Cause(ctx)
	}
}

func (e *lineEngine) Send(_ context.Context, text string) error {
	_, err := io.WriteString(e.input, text+"\n")
	return err
}
func (e *lineEngine) Steer(context.Context, string) error                    { return session.ErrUnsupported }
func (e *lineEngine) Interrupt(context.Context) error                        { return nil }
func (e *lineEngine) Answer(context.Context, string, session.Decision) error { return nil }
func (e *lineEngine) Close() error                                           { return e.input.Close() }

// conversing returns a bench whose runtime alpha holds sessions.
func conversing(t *testing.T) *bench {
	b := newBench(t, "alpha", "beta")
	rt := fakeRuntime("talker")
	rt.Executables = []string{"alpha"}
	rt.Session = &registry.Session{
		Use: registry.Use{
			Options: registry.Options{Model: true, Access: agent.Accesses(), Resume: true},
			Command: func(inv registry.Invocation) (agent.Command, error) {
				return agent.Command{Args: []string{"serve", "--model=" + inv.Model}}, nil
			},
		},
		Engine: func(registry.Invocation) engine.Engine { return new(lineEngine) },
	}
	if err := b.Registry.Register(rt); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) sessionRequest(script ...string) agent.Request {
	req := b.request(script...)
	req.Runtime, req.Prompt = "talker", ""
	return req
}

// leftBehind lists the folder for temporary files.
func (b *bench) leftBehind(t *testing.T) []string {
	t.Helper()
	dir, _ := agent.LookupEnv(b.Environ, "TMPDIR")
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func ExampleRunner_StartSession() {
	r := runner.Runner{Registry: new(registry.Registry)} // with backends in it
	s, err := r.StartSession(context.Background(), agent.Request{Runtime: "codex"}, session.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Stop(context.Background(), "done")
	result, err := s.Send(session.Message{Text: "What does this repository do?"}).Wait(context.Background())
	fmt.Println(result.Text, err)
	// Output: unknown runtime "codex" (known: none; import a package under backends)
}

func TestSessionTakesTurnsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	b := conversing(t)
	var events []agent.Kind
	req := b.sessionRequest("argv", "env TMPDIR", "stray", "converse")
	req.Prompt, req.Model, req.Resume = "first", "grey", "7"
	var started agent.Start
	answers := make(chan string, 10)
	s, err := b.StartSession(t.Context(), req, session.Options{Started: func(s agent.Start) { started = s }, Events: func(e *agent.Event) error {
		events = append(events, e.Kind)
		answers <- e.Text
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if started.Runtime != "talker" || started.Command.Args[0] != "serve" {
		t.Errorf("started %+v", started)
	}
	if info := s.Info(); info.SessionID != "s-7" || info.Model != "grey" {
		t.Errorf("%+v", info)
	}
	if got := <-answers; got != "serve|--model=grey" {
		t.Errorf("started as %s", got)
	}
	result, err := s.Send(session.Message{Text: "second"}).Wait(t.Context())
	if err != nil || result.Text != "second" || result.Runtime != "talker" {
		t.Errorf("%+v, %v", result, err)
	}
	if len(b.leftBehind(t)) == 0 {
		t.Error("the agent has no folder for temporary files")
	}
	s.Stop(t.Context(), "enough")
	if left := b.leftBehind(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if len(events) < 6 || len(b.warnings) > 0 {
		t.Errorf("events %v, warnings %q", events, b.warnings)
	}
}

func TestSessionEndsWithItsAgent(t *testing.T) {
	t.Parallel()
	b := conversing(t)
	s, err := b.StartSession(t.Context(), b.sessionRequest("say beat:", "converse"), session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Send(session.Message{Text: "die"}).Wait(t.Context())
	exit, ok := errors.AsType[*agent.ExitError](err)
	if !ok || !errors.Is(err, agent.ErrAgent) || exit.Code != 3 || exit.Stderr != "out of memory ***" {
		t.Errorf("%v, %q", err, exit.Stderr)
	}
	<-s.Done()
	if left := b.leftBehind(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	s.Stop(t.Context(), "")
}

func TestSessionIsStoppedThoughItsAgentIsBusy(t *testing.T) {
	t.Parallel()
	b := conversing(t)
	s, err := b.StartSession(t.Context(), b.sessionRequest("say beat:", "converse"), session.Options{CloseGrace: -1})
	if err != nil {
		t.Fatal(err)
	}
	turn := s.Send(session.Message{Text: "stay"})
	testwait.Until(t, "the turn", func() (session.State, bool) { return s.State(), s.State() == session.StateRunning })
	s.Stop(t.Context(), "")
	if _, err := turn.Wait(t.Context()); !errors.Is(err, agent.ErrCanceled) {
		t.Error(err)
	}
}

func TestSessionThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script  []string
		timeout time.Duration
		change  func(*agent.Request)
		kind    error
		text    string
	}{
		"the agent ends at once":        {script: []string{"stderr no login", "exit 4"}, kind: agent.ErrAgent, text: "cannot be opened: no greeting: exit code 4"},
		"the agent needs a login":       {script: []string{"exit 41"}, kind: agent.ErrAuthentication, text: "cannot be opened: no greeting: exit code 41"},
		"the agent has no credits":      {script: []string{"stderr no credits", "exit 1"}, kind: agent.ErrQuota, text: "cannot be opened"},
		"the agent is silent":           {script: []string{"hang"}, timeout: 100 * time.Millisecond, kind: agent.ErrTimeout, text: "cannot be opened"},
		"a runtime without sessions":    {change: func(r *agent.Request) { r.Runtime = "beta" }, kind: agent.ErrUsage, text: "Fake beta cannot hold a session; nothing was started"},
		"a setting sessions lack":       {change: func(r *agent.Request) { r.MaxTurns = 1 }, kind: agent.ErrUsage, text: "a session has no use for Request.MaxTurns"},
		"the latest session":            {change: func(r *agent.Request) { r.Continue = true }, kind: agent.ErrUsage, text: "a session has no use for Request.Continue"},
		"a first message that is blank": {change: func(r *agent.Request) { r.Prompt = " \n" }, kind: agent.ErrUsage, text: "the prompt is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := conversing(t)
			req := b.sessionRequest(c.script...)
			req.Timeout = c.timeout
			if c.change != nil {
				c.change(&req)
			}
			_, err := b.StartSession(t.Context(), req, session.Options{})
			if !errors.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("%v, want %v with %q", err, c.kind, c.text)
			}
			if left := b.leftBehind(t); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// Sessions and terminals use each field of a request or refuse it by name.
// The engine's error stays in the chain, next to the exit of the agent.
func TestSessionThatItsEngineRefusesNamesTheCause(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	refused := errors.New("no such thread")
	rt := fakeRuntime("refuser")
	rt.Executables = []string{"alpha"}
	rt.Session = &registry.Session{
		Use:    registry.Use{Options: registry.Options{Access: agent.Accesses()}, Command: func(registry.Invocation) (agent.Command, error) { return agent.Command{}, nil }},
		Engine: func(registry.Invocation) engine.Engine { return &refusingEngine{refusal: refused} },
	}
	if err := b.Registry.Register(rt); err != nil {
		t.Fatal(err)
	}
	req := b.sessionRequest("converse")
	req.Runtime = "refuser"
	_, err := b.StartSession(t.Context(), req, session.Options{})
	if _, ok := errors.AsType[*agent.ExitError](err); !ok || !errors.Is(err, refused) || !errors.Is(err, agent.ErrAgent) {
		t.Errorf("%v has the chain %#v", err, err)
	}
}

// An agent can repeat a secret in its errors.
func TestErrorsOfSessionsAreMasked(t *testing.T) {
	t.Parallel()
	const text = "the key sk-very-secret is not valid"
	for name, make := range map[string]func() engine.Engine{
		"open": func() engine.Engine { return &refusingEngine{refusal: errors.New(text)} },
		"open with a kind": func() engine.Engine {
			return &refusingEngine{refusal: &agent.Error{Kind: agent.ErrAgent, Err: errors.New(text)}}
		},
		"turn": func() engine.Engine { return &failingEngine{result: text} },
		"send": func() engine.Engine { return &failingEngine{err: errors.New(text)} },
		"end":  func() engine.Engine { return &failingEngine{closed: errors.New(text)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := conversing(t)
			rt, _ := b.Registry.Lookup("talker")
			rt.Session.Engine = func(registry.Invocation) engine.Engine { return make() }
			if err := b.Registry.Replace(rt); err != nil {
				t.Fatal(err)
			}
			s, err := b.StartSession(t.Context(), b.sessionRequest("say beat:", "converse"), session.Options{})
			if err == nil {
				_, err = s.Send(session.Message{Text: "x"}).Wait(t.Context())
				s.Stop(t.Context(), "")
			}
			if err == nil || !errors.Is(err, agent.ErrAgent) || !strings.Contains(err.Error(), "the key *** is not valid") {
				t.Errorf("%v", err)
			}
		})
	}
}

// failingEngine fails at the first message: by the result of the turn, by an error, or by
// the end of the agent.
type failingEngine struct {
	lineEngine
	sink   engine.Sink
	result string
	err    error
	closed error
}

func (e *failingEngine) Open(ctx context.Context, t engine.Transport, start engine.Start, sink engine.Sink) (engine.Info, error) {
	e.sink = sink
	if e.closed != nil {
		sink = endless{sink}
	}
	return e.lineEngine.Open(ctx, t, start, sink)
}

func (e *failingEngine) Send(context.Context, string) error {
	switch {
	case e.result != "":
		go e.sink.Event(&agent.Event{Kind: agent.KindResult, Failed: true, Text: e.result})
	case e.closed != nil:
		go e.sink.Closed(e.closed)
	}
	return e.err
}

// endless keeps the end of the output to itself.
type endless struct{ engine.Sink }

func (endless) Closed(error) {}

// A callback that panics leaves no agent and no files.
func TestPanicOfASessionsCallback(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*bench, *session.Options){
		"started":  func(_ *bench, o *session.Options) { o.Started = func(agent.Start) { panic("mine") } },
		"recorder": func(b *bench, _ *session.Options) { b.Recorder = panickingRecorder{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := conversing(t)
			var o session.Options
			set(b, &o)
			defer func() {
				if value := recover(); value != "mine" {
					t.Errorf("recovered %v, want the callback's panic", value)
				}
				if left := b.leftBehind(t); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			}()
			_, err := b.StartSession(t.Context(), b.sessionRequest("say beat:", "converse"), o)
			t.Errorf("StartSession = %v, want a panic", err)
		})
	}
}

type panickingRecorder struct{}

func (panickingRecorder) Record(context.Context, agent.Recordable) (agent.Recording, error) {
	return agent.Recording{Started: func(agent.Process) { panic("mine") }}, nil
}

// refusingEngine opens no session.
type refusingEngine struct {
	lineEngine
	refusal error
}

func (e *refusingEngine) Open(_ context.Context, t engine.Transport, _ engine.Start, sink engine.Sink) (engine.Info, error) {
	e.input = t.Input
	go func() {
		_, err := io.Copy(io.Discard, t.Output)
		sink.Closed(err)
	}()
	return engine.Info{}, e.refusal
}

func TestSessionRefusesWhatOnlyRunsHave(t *testing.T) {
	t.Parallel()
	b := conversing(t)
	b.OpenTerminal = func(context.Context, engine.Program, engine.Start) (engine.Engine, engine.Process, error) {
		t.Error("a terminal was opened")
		return nil, nil, session.ErrNoTerminals
	}
	for field, change := range map[string]func(*agent.Request){
		"Continue":     func(r *agent.Request) { r.Continue = true },
		"MaxTurns":     func(r *agent.Request) { r.MaxTurns = 1 },
		"IdleTimeout":  func(r *agent.Request) { r.IdleTimeout = time.Second },
		"CaptureLimit": func(r *agent.Request) { r.CaptureLimit = -1 },
		"Schema":       func(r *agent.Request) { r.Schema = []byte("{}") },
	} {
		for _, mode := range []session.Mode{session.ModeMinimal, session.ModeTmux} {
			req := b.sessionRequest("converse")
			change(&req)
			_, err := b.StartSession(t.Context(), req, session.Options{Mode: mode})
			if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "a session has no use for Request."+field) {
				t.Errorf("%s, %s: %v, want a usage error that names the field", field, mode, err)
			}
		}
	}
}

func TestSessionOfAnEndedContextStartsNothing(t *testing.T) {
	t.Parallel()
	b := conversing(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(b.dir, "started")
	req := b.sessionRequest("converse")
	options := session.Options{Started: func(agent.Start) { os.WriteFile(file, nil, 0o600) }}
	if _, err := b.StartSession(ctx, req, options); !errors.Is(err, agent.ErrCanceled) {
		t.Error(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it was started")
	}
}
