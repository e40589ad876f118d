package runner_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// counted is a runtime with every kind of Use. It counts the calls of Command and
// Prepare.
type counted struct {
	registry.Runtime
	built, prepared atomic.Int64
	last            registry.Invocation // what Command got
	refuse          error               // of Check
}

func (c *counted) use(command func(registry.Invocation) (agent.Command, error)) registry.Use {
	return registry.Use{
		Options:       registry.Options{Model: true, Access: agent.Accesses(), Resume: true, Continue: true},
		SlashCommands: true,
		Check:         func(registry.Invocation) error { return c.refuse },
		Prepare: func(_ context.Context, inv registry.Invocation, _ *instructions.Workspace) (registry.Setup, error) {
			c.prepared.Add(1)
			setup := registry.Setup{Args: []string{"--prepared"}}
			if inv.Continue {
				setup.Resume = "latest-1"
			}
			return setup, nil
		},
		Command: func(inv registry.Invocation) (agent.Command, error) {
			c.built.Add(1)
			c.last = inv
			return command(inv)
		},
	}
}

func countedBench(t *testing.T) (*bench, *counted) {
	b := newBench(t, "alpha")
	c := &counted{Runtime: fakeRuntime("counted")}
	c.Executables = []string{"alpha"}
	c.Run = c.use(c.Run.Command)
	c.Session = &registry.Session{
		Use:    c.use(func(registry.Invocation) (agent.Command, error) { return agent.Command{Args: []string{"serve"}}, nil }),
		Engine: func(registry.Invocation) engine.Engine { return new(lineEngine) },
	}
	c.Terminal = &registry.Terminal{
		Use:    c.use(func(registry.Invocation) (agent.Command, error) { return agent.Command{}, nil }),
		Resume: registry.ResumeFlag,
	}
	if err := b.Registry.Register(c.Runtime); err != nil {
		t.Fatal(err)
	}
	b.OpenTerminal = func(context.Context, engine.Program, engine.Start) (engine.Engine, engine.Process, error) {
		return nil, nil, errors.New("no terminal today")
	}
	return b, c
}

// ways are the operations that use a runtime.
func (b *bench) ways(t *testing.T) map[string]func(agent.Request) error {
	return map[string]func(agent.Request) error{
		"run": func(req agent.Request) error {
			_, err := b.Run(t.Context(), req, agent.Output{})
			return err
		},
		"recorded run": func(req agent.Request) error {
			b.recorded(agent.Recording{Prompt: "before: " + req.Prompt})
			defer func() { b.Recorder = nil }()
			_, err := b.Run(t.Context(), req, agent.Output{})
			return err
		},
		"plan": func(req agent.Request) error {
			_, err := b.DryRun(t.Context(), req)
			return err
		},
		"session": func(req agent.Request) error {
			s, err := b.StartSession(t.Context(), req, session.Options{})
			if err == nil {
				s.Stop(t.Context(), "")
			}
			return err
		},
		"terminal": func(req agent.Request) error {
			_, err := b.StartSession(t.Context(), req, session.Options{Mode: session.ModeTmux})
			if err != nil && strings.Contains(err.Error(), "no terminal today") {
				return nil
			}
			return err
		},
	}
}

// Command is called once, with the complete invocation: after Prepare, and with the
// prompt of the recorder.
func TestCommandIsBuiltOnce(t *testing.T) {
	t.Parallel()
	b, c := countedBench(t)
	for name, way := range b.ways(t) {
		c.built.Store(0)
		c.prepared.Store(0)
		req := b.request("say beat:", "say ok:")
		if name == "session" {
			req = b.sessionRequest("say beat:", "converse")
		}
		req.Runtime, req.Args = "counted", []string{"--own"}
		if err := way(req); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if built, prepared := c.built.Load(), c.prepared.Load(); built != 1 || prepared != 1 {
			t.Errorf("%s: %d commands were built and %d starts prepared, want one", name, built, prepared)
		}
		if got := strings.Join(c.last.Args, " "); got != "--prepared --own" {
			t.Errorf("%s: the builder got the arguments %q", name, got)
		}
		if want := "before: " + req.Prompt; name == "recorded run" && c.last.Prompt != want {
			t.Errorf("the builder got the prompt %q, want %q", c.last.Prompt, want)
		}
	}
}

// A usage error is reported before anything is written or prepared.
func TestCheckComesFirst(t *testing.T) {
	t.Parallel()
	b, c := countedBench(t)
	for what, change := range map[string]func(*agent.Request){
		"no such thing": func(*agent.Request) { c.refuse = agent.Usagef("no such thing") },
		"NUL":           func(r *agent.Request) { c.refuse, r.Args = nil, []string{"a\x00"} },
	} {
		for name, way := range b.ways(t) {
			req := b.request("say ok:")
			req.Runtime = "counted"
			change(&req)
			if err := way(req); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v, want a usage error with %q", name, err, what)
			}
			if c.prepared.Load()+c.built.Load() > 0 || len(b.leftBehind(t)) > 0 {
				t.Errorf("%s: something was prepared, built or written", name)
			}
		}
	}
	if entries, _ := os.ReadDir(b.dir); len(entries) != 0 {
		t.Errorf("written: %v", entries)
	}
}

// The session of Continue is known before the command is built.
func TestContinueIsSettled(t *testing.T) {
	t.Parallel()
	b, c := countedBench(t)
	req := b.request("say ok:")
	req.Runtime, req.Continue = "counted", true
	if _, err := b.DryRun(t.Context(), req); err != nil || c.last.Resume != "latest-1" || c.last.Continue {
		t.Errorf("%v, resumes %q, continues %t", err, c.last.Resume, c.last.Continue)
	}
}

func TestPromptIsGuardedForSlashCommands(t *testing.T) {
	t.Parallel()
	for _, slash := range []bool{false, true} {
		for prefix, want := range map[string]map[bool]string{
			"":         {false: "  /init", true: "\n  /init"},
			"rules:\n": {false: "rules:\n  /init", true: "rules:\n  /init"},
		} {
			b := newBench(t, "alpha")
			rt := fakeRuntime("slashing")
			rt.Executables, rt.Run.SlashCommands = []string{"alpha"}, slash
			rt.Run.Prepare = func(context.Context, registry.Invocation, *instructions.Workspace) (registry.Setup, error) {
				return registry.Setup{Prefix: prefix}, nil
			}
			if err := b.Registry.Register(rt); err != nil {
				t.Fatal(err)
			}
			req := b.request()
			req.Runtime, req.Prompt = "slashing", "  /init"
			if plan, err := b.DryRun(t.Context(), req); err != nil || plan.Start.Command.Stdin != want[slash] {
				t.Errorf("slash commands %t, prefix %q: the prompt is %q, %v; want %q", slash, prefix, plan.Start.Command.Stdin, err, want[slash])
			}
		}
	}
}

func TestRuntimeThatOnlyHoldsSessions(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	rt := fakeRuntime("talks")
	rt.Executables, rt.Run = []string{"alpha"}, registry.Use{}
	rt.Session = &registry.Session{
		Use:    registry.Use{Command: func(registry.Invocation) (agent.Command, error) { return agent.Command{}, nil }},
		Engine: func(registry.Invocation) engine.Engine { return new(lineEngine) },
	}
	if err := b.Registry.Register(rt); err != nil {
		t.Fatal(err)
	}
	found, err := b.Detect(t.Context())
	if i := slices.IndexFunc(found, func(d runner.Detected) bool { return d.Runtime.ID == "talks" }); err != nil || !found[i].Available() || found[i].Automatic() {
		t.Errorf("%+v, %v", found, err)
	}
	req := b.request("say ok:")
	req.Runtime = "talks"
	if _, err := b.DryRun(t.Context(), req); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), "cannot run once; start a session with it") {
		t.Errorf("%v, want a usage error", err)
	}
}
