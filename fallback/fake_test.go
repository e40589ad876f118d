package fallback

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// fakeRuntime has the tool "look", which changes nothing.
func fakeRuntime(id string) registry.Runtime {
	return registry.Runtime{
		ID: id, Name: "Fake " + id, Executables: []string{id}, InstallURL: "https://example.com/" + id,
		Variants: []string{"local"},
		Run: registry.Use{
			Options: registry.Options{
				Model: true, Access: agent.Accesses(), Efforts: agent.Efforts(), Resume: true, Continue: true,
				AllowCommands: true, AllowTools: true, DenyTools: true, MaxTurns: id != "gamma",
			},
			Command: func(inv registry.Invocation) (agent.Command, error) { return agent.Command{Stdin: inv.Prompt}, nil },
		},
		Decoder:      formatters.Generic,
		ReadingTools: []string{"look"},
	}
}

// step is what one fake run does.
type step struct {
	err    error
	runID  string
	events []agent.Event
	during func(agent.Request)

	warnings []string // instead of the default
}

// world is a Chain over fake runtimes, none of which is started.
type world struct {
	Chain
	t        *testing.T
	dir      string
	clock    time.Time
	steps    map[string]step // by token
	ran      []string
	requests []agent.Request
	outputs  []agent.Output
	warnings []string
}

func newWorld(t *testing.T, installed ...string) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), steps: map[string]step{}, clock: time.Date(2030, 1, 2, 12, 0, 0, 0, time.Local)}
	reg := new(registry.Registry)
	for _, id := range []string{"alpha", "beta", "gamma"} {
		if err := reg.Register(fakeRuntime(id)); err != nil {
			t.Fatal(err)
		}
	}
	path := t.TempDir()
	for _, id := range installed {
		if err := os.WriteFile(filepath.Join(path, id), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.Chain = Chain{
		Runner: &runner.Runner{
			Registry: reg,
			Environ:  []string{"PATH=" + path, "HOME=" + t.TempDir()},
			Warn:     func(string) {},
		},
		Cooldowns: NewCooldowns(filepath.Join(t.TempDir(), "resting")),
		Warn:      func(line string) { w.warnings = append(w.warnings, line) },
		now:       func() time.Time { return w.clock },
		run:       w.play,
	}
	return w
}

// play is a run of the fake that r selects for req.
func (w *world) play(ctx context.Context, r *runner.Runner, req agent.Request, out agent.Output) (agent.Result, error) {
	plan, err := r.DryRun(ctx, req)
	result := agent.Result{Runtime: req.Runtime, ExitCode: -1}
	if err != nil {
		w.ran = append(w.ran, "("+agent.KindOf(err)+")")
		return result, err
	}
	token := plan.Start.Runtime
	w.ran = append(w.ran, token)
	w.requests, w.outputs = append(w.requests, req), append(w.outputs, out)
	s := w.steps[token]
	result = agent.Result{
		Runtime: token, Model: plan.Settings.Model.Value, Text: "answer of " + token, RunID: s.runID,
		Duration: time.Second, Usage: &agent.Usage{Input: 7}, Warnings: []string{"warning of " + token},
	}
	if s.warnings != nil {
		result.Warnings = s.warnings
	}
	if out.Started != nil {
		out.Started(plan.Start)
	}
	for i := range s.events {
		if out.Events == nil {
			break
		}
		if err := out.Events(&s.events[i]); err != nil {
			return result, err
		}
	}
	if s.during != nil {
		s.during(req)
	}
	if s.err != nil {
		result.Text = ""
		return result, &agent.Error{Kind: s.err, Runtime: token, Err: errors.New("no luck")}
	}
	return result, nil
}

func (w *world) request(token string) agent.Request {
	return agent.Request{Runtime: token, Prompt: "do it", Workdir: w.dir, Model: "big"}
}

// runs runs a request and checks which runtimes ran.
func (w *world) runs(req agent.Request, want ...string) (agent.Result, error) {
	w.t.Helper()
	return w.runsTo(agent.Output{}, req, want...)
}

func (w *world) runsTo(out agent.Output, req agent.Request, want ...string) (agent.Result, error) {
	w.t.Helper()
	w.ran, w.requests, w.outputs, w.warnings = nil, nil, nil, nil
	result, err := w.Run(w.t.Context(), req, out)
	if len(w.ran) != len(want) {
		w.t.Fatalf("ran %q, want %q; %v, warnings %q", w.ran, want, err, w.warnings)
	}
	for i := range want {
		if w.ran[i] != want[i] {
			w.t.Fatalf("ran %q, want %q; %v, warnings %q", w.ran, want, err, w.warnings)
		}
	}
	return result, err
}

// stored are preferences.
type stored map[string]string

func (s stored) Get(_ context.Context, key string) (json.RawMessage, bool, error) {
	value, ok := s[key]
	return json.RawMessage(value), ok, nil
}
