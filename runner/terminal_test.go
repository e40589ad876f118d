package runner_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// shownRuntime is a runtime with a terminal. It reports undone preparations to note.
func shownRuntime(note func(string)) registry.Runtime {
	rt := fakeRuntime("shown")
	rt.Executables, rt.PrivateTemp, rt.EmptyDirs = []string{"alpha"}, true, []string{".empty"}
	rt.Run.Prepare = func(context.Context, registry.Invocation, *instructions.Workspace) (registry.Setup, error) {
		return registry.Setup{}, errors.New("that of a run")
	}
	rt.Terminal = &registry.Terminal{
		Terminal: engine.Terminal{Prompt: "? "},
		Use: registry.Use{
			Options: registry.Options{Model: true, Access: agent.Accesses(), Resume: true},
			Prepare: func(_ context.Context, inv registry.Invocation, _ *instructions.Workspace) (registry.Setup, error) {
				setup := registry.Setup{
					Args: []string{"prepared"}, Prefix: "rules: ", SessionID: func() string { return "s-1" },
					Close: func(context.Context) []string { note("closed"); return nil },
				}
				if inv.Resume == "files" {
					setup.Files = [][]byte{nil}
				}
				return setup, nil
			},
			Command: func(inv registry.Invocation) (agent.Command, error) {
				return agent.Command{Args: append([]string{"--model=" + inv.Model}, inv.Args...), Env: []string{"SHOWN=1"}}, nil
			},
		},
		Resume: registry.ResumeFlag,
	}
	return rt
}

// held is an engine and a process that do nothing.
type held struct {
	got  chan string
	sink engine.Sink
	done chan struct{}
	over func()
}

func (h *held) Open(_ context.Context, _ engine.Transport, _ engine.Start, sink engine.Sink) (engine.Info, error) {
	h.sink = sink
	return engine.Info{}, nil
}
func (h *held) Send(_ context.Context, text string) error              { h.got <- text; return nil }
func (h *held) Steer(context.Context, string) error                    { return session.ErrUnsupported }
func (h *held) Interrupt(context.Context) error                        { return nil }
func (h *held) Answer(context.Context, string, session.Decision) error { return nil }
func (h *held) Close() error                                           { return nil }
func (h *held) Done() <-chan struct{}                                  { return h.done }
func (h *held) Stop()                                                  { h.over() }

func TestTerminalSession(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	var taken []string
	if err := b.Registry.Register(shownRuntime(func(what string) { taken = append(taken, what) })); err != nil {
		t.Fatal(err)
	}
	var program engine.Program
	h := &held{got: make(chan string, 1), done: make(chan struct{})}
	b.OpenTerminal = func(_ context.Context, p engine.Program, start engine.Start) (engine.Engine, engine.Process, error) {
		program = p
		h.over = func() {
			h.sink.Closed(nil)
			p.Ended(0)
			close(h.done)
		}
		if start.Resume != "old" {
			t.Errorf("start %+v", start)
		}
		return h, h, nil
	}
	req := b.request()
	req.Runtime, req.Prompt, req.Model, req.Resume = "shown", "hello", "m", "old"
	s, err := b.StartSession(t.Context(), req, session.Options{Mode: session.ModeTmux})
	if err != nil {
		t.Fatal(err)
	}
	if got := <-h.got; got != "rules: hello" {
		t.Errorf("the first message is %q", got)
	}
	dir, _ := agent.LookupEnv(program.Env, "TMPDIR")
	shown, _ := agent.LookupEnv(program.Env, "SHOWN")
	if !slices.Equal(program.Args, []string{"--model=m", "prepared"}) || filepath.Base(program.Path) != "alpha" || shown != "1" || dir == "" ||
		program.Terminal.Prompt != "? " || program.SessionID() != "s-1" || !slices.Equal(program.EmptyDirs, []string{".empty"}) {
		t.Errorf("%+v", program)
	}
	if len(taken) != 0 {
		t.Errorf("taken back while it runs: %q", taken)
	}
	s.Stop(t.Context(), "done")
	if left := b.leftBehind(t); !slices.Equal(taken, []string{"closed"}) || len(left) != 0 {
		t.Errorf("taken back %q, left %q", taken, left)
	}
}

func TestTerminalSessionRefusesFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	rt := shownRuntime(func(string) {})
	rt.Terminal.Options.Attachments = []string{agent.MediaPNG}
	if err := b.Registry.Register(rt); err != nil {
		t.Fatal(err)
	}
	b.OpenTerminal = func(context.Context, engine.Program, engine.Start) (engine.Engine, engine.Process, error) {
		t.Error("a terminal was opened")
		return nil, nil, errors.New("no terminal")
	}
	req := b.request()
	req.Runtime, req.Prompt, req.Attachments = "shown", "what?", []agent.Attachment{picture}
	if _, err := b.StartSession(t.Context(), req, session.Options{Mode: session.ModeTmux}); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "cannot pass the file") {
		t.Errorf("%v, want a usage error", err)
	}
}

func TestTerminalSessionRefusesStderr(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	_, err := b.StartSession(t.Context(), b.request("x"), session.Options{Mode: session.ModeTmux, Stderr: io.Discard})
	if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "Options.Stderr") {
		t.Errorf("%v, want a usage error that names Stderr", err)
	}
}

func TestTerminalSessionThatIsNotStarted(t *testing.T) {
	t.Parallel()
	broken := errors.New("no terminal today")
	for name, c := range map[string]struct {
		change func(*agent.Request)
		open   engine.OpenTerminal
		kind   error
		says   string
	}{
		"it fails": {func(*agent.Request) {}, func(context.Context, engine.Program, engine.Start) (engine.Engine, engine.Process, error) {
			return nil, nil, broken
		}, agent.ErrAgent, "no terminal today"},
		"descriptors":      {func(r *agent.Request) { r.Resume = "files" }, nil, agent.ErrUsage, "descriptors"},
		"another runtime":  {func(r *agent.Request) { r.Runtime = "beta" }, nil, agent.ErrUsage, "be held in a terminal"},
		"an unknown mode":  {func(r *agent.Request) { r.Runtime = "mode" }, nil, agent.ErrUsage, `"mode" is not a mode`},
		"nothing built in": {func(r *agent.Request) { r.Runtime = "nothing" }, nil, session.ErrNoTerminals, "session/tmux"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "alpha", "beta")
			closed := 0
			if err := b.Registry.Register(shownRuntime(func(string) { closed++ })); err != nil {
				t.Fatal(err)
			}
			b.OpenTerminal = func(ctx context.Context, p engine.Program, start engine.Start) (engine.Engine, engine.Process, error) {
				if c.open == nil {
					t.Error("something is started")
					return nil, nil, broken
				}
				return c.open(ctx, p, start)
			}
			req := b.request()
			req.Runtime, req.Prompt = "shown", ""
			c.change(&req)
			options := session.Options{Mode: session.ModeTmux}
			switch req.Runtime {
			case "mode":
				req.Runtime, options.Mode = "shown", "mode"
			case "nothing":
				req.Runtime, b.OpenTerminal = "shown", nil
			}
			if _, err := b.StartSession(t.Context(), req, options); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %v with %q", err, c.kind, c.says)
			}
			if left := b.leftBehind(t); len(left) != 0 {
				t.Errorf("left %q", left)
			}
			if want := map[bool]int{true: 1}[name == "it fails" || name == "descriptors"]; closed != want {
				t.Errorf("taken back %d times, want %d", closed, want)
			}
		})
	}
}
