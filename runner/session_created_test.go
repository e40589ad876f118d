package runner_test

import (
	"context"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/instructions"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/engine"
)

// createdEngine records the time of creation that it is given.
type createdEngine struct {
	lineEngine
	created *time.Time
	start   *engine.Start
}

func (e *createdEngine) Open(ctx context.Context, t engine.Transport, start engine.Start, sink engine.Sink) (engine.Info, error) {
	if e.start != nil {
		*e.start = start
	}
	if e.created != nil {
		*e.created = start.Created
	}
	return e.lineEngine.Open(ctx, t, start, sink)
}

// TestSessionCreated checks that the time from the runtime takes precedence over the
// caller's.
func TestSessionCreated(t *testing.T) {
	t.Parallel()
	early, late := time.Unix(1000, 0), time.Unix(2000, 0)
	for name, c := range map[string]struct{ setup, caller, want time.Time }{
		"unknown":          {},
		"from the caller":  {caller: late, want: late},
		"from the runtime": {setup: early, want: early},
		"from both":        {setup: early, caller: late, want: early},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := conversing(t)
			var created time.Time
			var start engine.Start
			rt := fakeRuntime("keeper")
			rt.Executables = []string{"alpha"}
			rt.Session = &registry.Session{
				Use: registry.Use{
					Options: registry.Options{Access: agent.Accesses(), Resume: true, Efforts: agent.Efforts()},
					Prepare: func(_ context.Context, inv registry.Invocation, _ *instructions.Workspace) (registry.Setup, error) {
						return registry.Setup{SessionCreated: c.setup}, nil
					},
					Command: func(registry.Invocation) (agent.Command, error) { return agent.Command{}, nil },
				},
				Engine: func(registry.Invocation) engine.Engine { return &createdEngine{created: &created, start: &start} },
			}
			rt.Instructions = &registry.Instructions{MaxBytes: 1 << 10}
			if err := b.Registry.Register(rt); err != nil {
				t.Fatal(err)
			}
			req := b.sessionRequest("say beat:", "converse")
			req.Runtime, req.Resume = "keeper", "7"
			req.ReasoningEffort = agent.EffortHigh
			s, err := b.StartSession(t.Context(), req, session.Options{Created: c.caller})
			if err != nil {
				t.Fatal(err)
			}
			s.Stop(t.Context(), "")
			if !created.Equal(c.want) {
				t.Errorf("created %v, want %v", created, c.want)
			}
			if start.Effort != agent.EffortHigh {
				t.Errorf("effort %q", start.Effort)
			}
		})
	}
}

// TestEverySessionProtectsWhatRuntimesRun checks that a session protects the files of
// all runtimes, not only of its runtime.
func TestEverySessionProtectsWhatRuntimesRun(t *testing.T) {
	t.Parallel()
	b := conversing(t)
	var start engine.Start
	for name, protected := range map[string][]string{"keeper": {".keeper"}, "other": {".other", ".other.json"}} {
		rt := fakeRuntime(name)
		rt.Executables, rt.Protected, rt.Executed = []string{"alpha"}, protected, []string{name + "/run.sh"}
		rt.Session = &registry.Session{
			Use:    registry.Use{Options: registry.Options{Access: agent.Accesses()}, Command: func(registry.Invocation) (agent.Command, error) { return agent.Command{}, nil }},
			Engine: func(registry.Invocation) engine.Engine { return &createdEngine{start: &start} },
		}
		if err := b.Registry.Register(rt); err != nil {
			t.Fatal(err)
		}
	}
	req := b.sessionRequest("say beat:", "converse")
	req.Runtime = "keeper"
	s, err := b.StartSession(t.Context(), req, session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Stop(t.Context(), "")
	for name, want := range map[string]bool{"file": true, ".keeper/x": false, "sub/.other/x": false, "other/run.sh": false, "other/x": true, ".other.json": false, ".git/config": false} {
		if got := start.MayEdit(agent.AccessWrite, []string{name}); got != want {
			t.Errorf("%s may be edited: %v", name, got)
		}
	}
}
