package fallback

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

func (w *world) warned(parts ...string) {
	w.t.Helper()
	text := strings.Join(w.warnings, "\n")
	if len(w.warnings) != len(parts) {
		w.t.Fatalf("%d warnings, want %d:\n%s", len(w.warnings), len(parts), text)
	}
	for i, part := range parts {
		if !strings.Contains(w.warnings[i], part) {
			w.t.Errorf("warning %q lacks %q", w.warnings[i], part)
		}
	}
}

func toolCall(name string) agent.Event {
	return agent.Event{Kind: agent.KindToolCall, Tool: &agent.Tool{Name: name}}
}

// Of all kinds of errors only those fall back of which it is known that another
// runtime may do better.
func TestWhichErrorsFallBack(t *testing.T) {
	t.Parallel()
	for kind, retried := range map[error]bool{
		agent.ErrQuota: true, agent.ErrAuthentication: true,
		agent.ErrAgent: false, agent.ErrTimeout: false, agent.ErrIdleTimeout: false, agent.ErrCanceled: false, agent.ErrUsage: false,
		errors.New("unknown"): false,
	} {
		t.Run(kind.Error(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "alpha", "beta")
			w.Runtimes = []string{"beta"}
			w.steps["alpha"] = step{err: kind}
			if !retried {
				result, err := w.runs(w.request("alpha"), "alpha")
				if !errors.Is(err, kind) || result.Attempts != nil {
					t.Errorf("%v, attempts %+v", err, result.Attempts)
				}
				w.warned()
				return
			}
			result, err := w.runs(w.request("alpha"), "alpha", "beta")
			if err != nil || result.Text != "answer of beta" {
				t.Errorf("%q, %v", result.Text, err)
			}
			w.warned("alpha: " + kind.Error() + " (no luck); trying beta")
		})
	}
}

// What the result reports about the attempts before it, and what is passed on.
func TestFallsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta", "gamma")
	w.Runtimes = []string{"alpha", "beta", "gamma"} // alpha is not tried again
	w.steps["alpha"] = step{err: agent.ErrQuota, runID: "run-1", during: func(agent.Request) { w.clock = w.clock.Add(10 * time.Minute) }}
	w.steps["beta"] = step{err: agent.ErrAuthentication, runID: "run-2", during: func(agent.Request) { w.clock = w.clock.Add(time.Minute) }}
	w.steps["gamma"] = step{runID: "run-3"}
	req := w.request("alpha")
	req.ReasoningEffort, req.Timeout = agent.EffortHigh, time.Hour
	req.Labels = agent.Labels{Task: "task", Previous: "run-0"}
	started := []string{}
	out := agent.Output{Started: func(s agent.Start) { started = append(started, s.Runtime+" "+s.Model) }}
	result, err := w.runsTo(out, req, "alpha", "beta", "gamma")
	if err != nil {
		t.Fatal(err)
	}
	want := agent.Result{
		Runtime: "gamma", Model: "auto", Text: "answer of gamma", RunID: "run-3", Duration: time.Second, Usage: &agent.Usage{Input: 7},
		Attempts: []agent.Attempt{
			{Runtime: "alpha", Model: "big", Kind: "quota", Error: "alpha: no luck", RunID: "run-1", Usage: &agent.Usage{Input: 7}, Duration: time.Second},
			{Runtime: "beta", Model: "auto", Kind: "authentication", Error: "beta: no luck", RunID: "run-2", Usage: &agent.Usage{Input: 7}, Duration: time.Second},
		},
		Warnings: []string{
			"warning of alpha", "alpha: quota (no luck); trying beta",
			"warning of beta", "beta: authentication (no luck); trying gamma",
			"warning of gamma",
		},
	}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"alpha big", "beta ", "gamma "}, started); diff != "" {
		t.Errorf("started (-want +got):\n%s", diff)
	}
	for i, want := range []struct {
		timeout  time.Duration
		previous string
		model    string
	}{{time.Hour, "run-0", "big"}, {50 * time.Minute, "run-1", ""}, {49 * time.Minute, "run-2", ""}} {
		got := w.requests[i]
		if got.Timeout != want.timeout || got.Labels.Previous != want.previous || got.Model != want.model ||
			got.Prompt != "do it" || got.ReasoningEffort != agent.EffortHigh || got.Labels.Task != "task" || got.Resume != "" {
			t.Errorf("request %d is %+v, want %+v", i, got, want)
		}
	}
}

// Without a list nothing is different from a plain run.
func TestNoListIsAPlainRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta")
	w.steps["alpha"] = step{err: agent.ErrQuota}
	for _, list := range [][]string{nil, {}, {"none"}} {
		w.Runtimes = list
		result, err := w.runs(w.request("alpha"), "alpha")
		if !errors.Is(err, agent.ErrQuota) || result.Attempts != nil || w.outputs[0].Events != nil {
			t.Errorf("list %q: %v, %+v", list, err, result)
		}
		w.warned()
	}
	if list, err := w.Cooldowns.List(w.clock); len(list) != 0 || err != nil {
		t.Errorf("%v c, %v", list, err)
	}
}

// The result has the last error and all earlier attempts.
func TestAllFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta")
	w.Runtimes = []string{"beta", "gamma"}
	w.steps["alpha"], w.steps["beta"] = step{err: agent.ErrQuota}, step{err: agent.ErrQuota}
	result, err := w.runs(w.request("alpha"), "alpha", "beta")
	if e, ok := errors.AsType[*agent.Error](err); !ok || e.Runtime != "beta" || e.Kind != agent.ErrQuota {
		t.Errorf("error %v", err)
	}
	if result.Runtime != "beta" || len(result.Attempts) != 1 || result.Attempts[0].Runtime != "alpha" {
		t.Errorf("result %+v", result)
	}
	w.warned("trying beta", "gamma cannot be started: Fake gamma is not installed")
}

func TestStartsWhereTheFirstIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "gamma")
	w.Runtimes = []string{"beta", "gamma"}
	result, err := w.runs(w.request("alpha"), "(not_installed)", "gamma")
	if err != nil || len(result.Attempts) != 2 || result.Attempts[0].Kind != "not_installed" || result.Attempts[0].Runtime != "alpha" || result.Attempts[0].RunID != "" ||
		result.Attempts[1].Runtime != "beta" || result.Attempts[1].Kind != "not_installed" {
		t.Errorf("%v, %+v", err, result.Attempts)
	}
	w.warned("alpha: Fake alpha is not installed", "beta cannot be started")

	// No runtime is installed: the error is that of the requested one.
	w = newWorld(t)
	w.Runtimes = []string{"beta"}
	_, err = w.runs(w.request("alpha"), "(not_installed)")
	if !errors.Is(err, agent.ErrNotInstalled) || !strings.Contains(err.Error(), "alpha") {
		t.Error(err)
	}
	// And nothing is named.
	_, err = w.runs(w.request(""), "(none_available)")
	if !errors.Is(err, agent.ErrNoneAvailable) {
		t.Error(err)
	}
	// A caller who wants a runtime to be named gets no other.
	w = newWorld(t, "beta")
	w.Runtimes, w.Chain.Runner.RequireConfigured = []string{"beta"}, true
	if _, err = w.Run(t.Context(), w.request(""), agent.Output{}); !errors.Is(err, agent.ErrNoneAvailable) || len(w.ran) != 0 {
		t.Errorf("%v, ran %q", err, w.ran)
	}
}

// A disabled runtime is not replaced by the one that would be selected instead.
func TestSkipsTheDisabled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta", "gamma")
	w.Chain.Runner.Disable = []string{"beta"}
	w.Runtimes = []string{"beta", "gamma:local"}
	w.set("BUS_AGENT=gamma")
	w.steps["alpha"] = step{err: agent.ErrQuota}
	if _, err := w.runs(w.request("alpha"), "alpha", "gamma:local"); err != nil {
		t.Error(err)
	}
	w.warned("trying gamma:local", "beta is disabled; it is skipped")
}

func TestNothingIsTriedAfterAChange(t *testing.T) {
	t.Parallel()
	change := agent.Event{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: "a.txt", Action: "add"}}}
	for name, tt := range map[string]struct {
		events  []agent.Event
		edit    func(*world, *agent.Request)
		changed string // in the warning; empty where the next one is tried
	}{
		"nothing":         {},
		"text":            {events: []agent.Event{{Kind: agent.KindText, Text: "hm"}, {Kind: agent.KindToolResult, Tool: &agent.Tool{}}}},
		"reading tool":    {events: []agent.Event{toolCall("look")}},
		"unknown line":    {events: []agent.Event{{Kind: agent.KindRaw, Text: "?"}}},
		"other tool":      {events: []agent.Event{toolCall("look"), toolCall("shell"), toolCall("look")}, changed: "(tool shell)"},
		"other case":      {events: []agent.Event{toolCall("Look")}, changed: "(tool Look)"},
		"nameless tool":   {events: []agent.Event{{Kind: agent.KindToolCall}}, changed: "without a name"},
		"file":            {events: []agent.Event{change}, changed: "(file a.txt)"},
		"subagent":        {events: []agent.Event{{Kind: agent.KindToolCall, Subagent: "s", Tool: &agent.Tool{Name: "shell"}}}, changed: "shell"},
		"line too long":   {events: []agent.Event{{Kind: agent.KindRaw, Truncated: true}}, changed: "too long"},
		"asked for":       {events: []agent.Event{change}, edit: func(w *world, _ *agent.Request) { w.AfterChanges = true }},
		"access read":     {events: []agent.Event{toolCall("shell")}, edit: func(_ *world, r *agent.Request) { r.Access = agent.AccessRead }},
		"read, let loose": {events: []agent.Event{toolCall("shell")}, edit: func(_ *world, r *agent.Request) { r.Access, r.AllowCommands = agent.AccessRead, []string{"make"} }, changed: "shell"},
		"read, trusted":   {events: []agent.Event{toolCall("shell")}, edit: func(_ *world, r *agent.Request) { r.Access, r.TrustWorkspace = agent.AccessRead, true }, changed: "shell"},
		"read, stored MCP servers": {events: []agent.Event{toolCall("shell")}, edit: func(w *world, r *agent.Request) {
			r.Access, w.Runner.Preferences = agent.AccessRead, stored{runner.KeyMCP: `{}`}
		}, changed: "shell"},
		"tool, full access": {events: []agent.Event{toolCall("shell")}, edit: func(_ *world, r *agent.Request) { r.Access = agent.AccessFull }, changed: "shell"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "alpha", "beta")
			w.Runtimes = []string{"beta"}
			w.steps["alpha"] = step{err: agent.ErrQuota, events: tt.events}
			req := w.request("alpha")
			if tt.edit != nil {
				tt.edit(w, &req)
			}
			if tt.changed == "" {
				if _, err := w.runs(req, "alpha", "beta"); err != nil {
					t.Error(err)
				}
				return
			}
			result, err := w.runs(req, "alpha")
			if !errors.Is(err, agent.ErrQuota) || result.Attempts != nil {
				t.Errorf("%v, %+v", err, result.Attempts)
			}
			w.warned(tt.changed)
			if !slices.Contains(result.Warnings, w.warnings[0]) {
				t.Errorf("the result has the warnings %q", result.Warnings)
			}
		})
	}
}

// Each runtime is judged by its own tools, and equal warnings are shown once.
func TestToolsOfTheNextRuntime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta", "gamma")
	w.Runtimes = []string{"beta", "gamma"}
	w.steps["alpha"] = step{err: agent.ErrQuota, warnings: []string{"alike"}}
	w.steps["beta"] = step{err: agent.ErrQuota, warnings: []string{"alike"}, events: []agent.Event{toolCall("look")}}
	w.steps["gamma"] = step{warnings: []string{"alike"}}
	result, err := w.runs(w.request("alpha"), "alpha", "beta", "gamma")
	if err != nil || len(result.Warnings) != 3 {
		t.Errorf("%v, warnings %q", err, result.Warnings)
	}
}

// The caller gets every event of every attempt, and its error stops all.
func TestEventsContinueAfterAFallback(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta")
	w.Runtimes = []string{"beta"}
	w.steps["alpha"] = step{err: agent.ErrQuota, events: []agent.Event{{Kind: agent.KindText, Text: "1"}, toolCall("look")}}
	w.steps["beta"] = step{events: []agent.Event{{Kind: agent.KindText, Text: "2"}}}
	req := w.request("alpha")
	var got []string
	out := agent.Output{Events: func(e *agent.Event) error { got = append(got, string(e.Kind)+e.Text); return nil }}
	if _, err := w.runsTo(out, req, "alpha", "beta"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"text1", "tool_call", "text2"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	stop := errors.New("stop")
	out.Events = func(*agent.Event) error { return stop }
	w.Cooldown = -1
	if _, err := w.runsTo(out, req, "alpha"); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// Runs are watched for changes only while another runtime can be tried.
func TestWatchesOnlyWhereItMatters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta")
	w.Runtimes = []string{"beta", "gamma"} // which is not installed
	w.steps["alpha"] = step{err: agent.ErrQuota}
	if _, err := w.runs(w.request("alpha"), "alpha", "beta"); err != nil {
		t.Error(err)
	}
	if w.outputs[0].Events == nil || w.outputs[1].Events != nil {
		t.Error("want the first run to be watched and the second not")
	}
}

func TestTimeLimitsAllRunsTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta")
	w.Runtimes = []string{"beta"}
	w.Chain.Runner.Environ = append(w.Chain.Runner.Environ, "BUS_AGENT_TIMEOUT=2m")
	took := 90 * time.Second
	w.steps["alpha"] = step{err: agent.ErrQuota, during: func(agent.Request) { w.clock = w.clock.Add(took) }}
	w.Cooldown = -1
	if _, err := w.runs(w.request("alpha"), "alpha", "beta"); err != nil || w.requests[0].Timeout != 0 || w.requests[1].Timeout != 30*time.Second {
		t.Errorf("%v, %+v", err, w.requests)
	}
	took = 2 * time.Minute
	_, err := w.runs(w.request("alpha"), "alpha")
	if !errors.Is(err, agent.ErrQuota) {
		t.Error(err)
	}
	w.warned("the timeout of 2m0s is used up")
}

func TestCancelEndsAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta")
	w.Runtimes = []string{"beta"}
	ctx, cancel := context.WithCancel(t.Context())
	w.steps["alpha"] = step{err: agent.ErrQuota, during: func(agent.Request) { cancel() }}
	_, err := w.Run(ctx, w.request("alpha"), agent.Output{})
	if !errors.Is(err, agent.ErrQuota) || len(w.ran) != 1 {
		t.Errorf("%v, ran %q", err, w.ran)
	}
	if _, err = w.Run(ctx, w.request("alpha"), agent.Output{}); !errors.Is(err, agent.ErrCanceled) || len(w.ran) != 1 {
		t.Errorf("%v, ran %q", err, w.ran)
	}
}

// A request that is for one runtime is run, and not passed on.
func TestTiedRequests(t *testing.T) {
	t.Parallel()
	for why, edit := range map[string]func(*agent.Request){
		"session":         func(r *agent.Request) { r.Resume = "id" },
		"session ":        func(r *agent.Request) { r.Continue = true },
		"arguments":       func(r *agent.Request) { r.Args = []string{"-x"} },
		"names of tools":  func(r *agent.Request) { r.AllowTools = []string{"look"} },
		"names of tools ": func(r *agent.Request) { r.DenyTools = []string{"look"} },
	} {
		w := newWorld(t, "alpha", "beta")
		w.Runtimes = []string{"beta"}
		w.steps["alpha"] = step{err: agent.ErrQuota}
		req := w.request("alpha")
		edit(&req)
		result, err := w.runs(req, "alpha")
		if !errors.Is(err, agent.ErrQuota) || len(result.Warnings) != 2 {
			t.Errorf("%v, %q", err, result.Warnings)
		}
		w.warned("no other runtime is tried, because")
		if !strings.Contains(w.warnings[0], strings.TrimSpace(why)) {
			t.Errorf("warning %q lacks %q", w.warnings[0], why)
		}
		w.steps["alpha"] = step{}
		if _, err := w.runs(req, "alpha"); err != nil {
			t.Error(err)
		}
		w.warned()
	}
}

// A usage error is reported before anything is started.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(*world, *agent.Request){
		`fallback list: unknown runtime "delta"`:               func(w *world, _ *agent.Request) { w.Runtimes = []string{"beta", "delta"} },
		`fallback list: runtime "beta" is listed twice`:        func(w *world, _ *agent.Request) { w.Runtimes = []string{"beta", "gamma", "beta"} },
		`fallback list: unknown runtime ""`:                    func(w *world, _ *agent.Request) { w.Runtimes = []string{""} },
		`BUS_AGENT_FALLBACK: unknown runtime "Delta`:           func(w *world, _ *agent.Request) { w.set("BUS_AGENT_FALLBACK=Delta") },
		`fallback to gamma: Fake gamma cannot limit its turns`: func(w *world, r *agent.Request) { w.Runtimes, r.MaxTurns = []string{"beta", "gamma"}, 3 },
		`the prompt is empty`:                                  func(w *world, r *agent.Request) { w.Runtimes, r.Prompt = []string{"beta"}, "" },
	} {
		w := newWorld(t, "alpha", "beta", "gamma")
		req := w.request("alpha")
		edit(w, &req)
		result, err := w.Run(t.Context(), req, agent.Output{})
		if !errors.Is(err, agent.ErrUsage) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		if len(w.ran) != 0 || result.ExitCode != -1 || result.Runtime != "alpha" {
			t.Errorf("ran %q, %+v", w.ran, result)
		}
	}
}

// Builds with different runtimes share the list of a user.
func TestUnknownRuntimeOfADefaultListIsIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta")
	w.set("BUS_AGENT_FALLBACK=delta,beta")
	w.steps["alpha"] = step{err: agent.ErrQuota}
	if _, err := w.runs(w.request("alpha"), "alpha", "beta"); err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(w.warnings, func(line string) bool {
		return strings.HasPrefix(line, `fallback list (BUS_AGENT_FALLBACK): unknown runtime "delta"`)
	}) {
		t.Errorf("warnings = %q", w.warnings)
	}
}

func (w *world) set(entry string) {
	w.Chain.Runner.Environ = append(w.Chain.Runner.Environ, entry)
}

// A default runtime that does not fit the request is skipped without an error.
func TestADefaultThatDoesNotFitIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta", "gamma")
	w.set("BUS_AGENT_FALLBACK=gamma, beta")
	w.steps["alpha"] = step{err: agent.ErrQuota}
	req := w.request("alpha")
	req.MaxTurns = 3
	if _, err := w.runs(req, "alpha", "beta"); err != nil {
		t.Error(err)
	}
	w.warned("trying beta", "gamma cannot take this run over: Fake gamma cannot limit its turns; it is skipped")
}

// A model that is set for one runtime counts for it, also in a fallback.
func TestModelOfTheNextRuntime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta")
	w.Runtimes = []string{"beta"}
	sources := runner.BusAgent()
	sources.Model = append([]runner.Source{{Env: "BETA_MODEL", Runtime: "beta"}}, sources.Model...)
	w.Chain.Runner.Sources = &sources
	w.set("BUS_AGENT_MODEL=huge")
	w.steps["alpha"] = step{err: agent.ErrQuota}
	w.Cooldown = -1
	for _, want := range []string{"auto", "small"} {
		result, err := w.runs(w.request("alpha"), "alpha", "beta")
		if err != nil || result.Model != want {
			t.Errorf("%v, model %q, want %q", err, result.Model, want)
		}
		w.set("BETA_MODEL=small")
	}
}

func TestWarnsWhereTheRunnerDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta")
	w.Runtimes, w.Warn = []string{"beta"}, nil
	var got []string
	w.Chain.Runner.Warn = func(line string) { got = append(got, line) }
	w.steps["alpha"] = step{err: agent.ErrQuota}
	if _, err := w.runs(w.request("alpha"), "alpha", "beta"); err != nil || len(got) != 1 {
		t.Errorf("%v, %q", err, got)
	}
}

func TestLongReasonsAreCut(t *testing.T) {
	t.Parallel()
	err := &agent.Error{Kind: agent.ErrQuota, Runtime: "alpha", Err: fmt.Errorf("two\nlines %s", strings.Repeat("ä", 400))}
	if got := describe(err); len(got) > maxReason+40 || strings.Contains(got, "\n") || !strings.HasSuffix(got, "ä…)") {
		t.Error(got)
	}
}

// What would be run and what may be tried, without a run.
func TestPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta")
	w.Chain.Runner.Disable = []string{"gamma"}
	w.Runtimes = []string{"gamma", "beta"}
	plan := func(token, starts string, want ...Candidate) {
		t.Helper()
		got, list, err := w.DryRun(t.Context(), w.request(token))
		if err != nil || got.Start.Runtime != starts || cmp.Diff(want, list) != "" {
			t.Errorf("%v, starts %q, candidates %+v", err, got.Start.Runtime, list)
		}
	}
	plan("", "alpha", Candidate{Runtime: "alpha"}, Candidate{"gamma", "is disabled"}, Candidate{Runtime: "beta"})
	if err := w.Cooldowns.Put(Cooldown{Runtime: "alpha", Kind: "quota", Since: w.clock, Until: w.clock.Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	plan("alpha", "beta", Candidate{"alpha", "is in cooldown until 12:01:00 (quota)"}, Candidate{"gamma", "is disabled"}, Candidate{Runtime: "beta"})
	w.Runtimes = []string{"alpha"}
	plan("beta", "beta", Candidate{Runtime: "beta"}, Candidate{"alpha", "is in cooldown until 12:01:00 (quota)"})
	w.Chain.Runner.Disable = nil
	missing := "cannot be started: Fake gamma is not installed: no gamma in PATH; get it at https://example.com/gamma"
	plan("gamma", "alpha", Candidate{"gamma", missing}, Candidate{Runtime: "alpha"})
	w.Runtimes = nil
	plan("alpha", "alpha")
	w.Runtimes = []string{"gamma:local"}
	if _, _, err := w.DryRun(t.Context(), w.request("gamma")); !errors.Is(err, agent.ErrNotInstalled) {
		t.Error(err)
	}
	w.Runtimes = []string{"delta"}
	if _, _, err := w.DryRun(t.Context(), w.request("alpha")); !errors.Is(err, agent.ErrUsage) {
		t.Error(err)
	}
}

// A grouper records which runs belong to its group.
type grouper struct {
	agent.Recorder
	ended []error
}

type groupKey struct{}

func (g *grouper) Group(ctx context.Context, environ []string) (context.Context, func(agent.Result, error)) {
	value, _ := agent.LookupEnv(environ, "OF_THE_REQUEST")
	return context.WithValue(ctx, groupKey{}, value), func(_ agent.Result, err error) { g.ended = append(g.ended, err) }
}

func TestAttemptsAreAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "alpha", "beta")
	w.Runtimes = []string{"beta"}
	g := &grouper{}
	w.Runner.Recorder = g
	w.steps["alpha"] = step{err: &agent.Error{Kind: agent.ErrQuota, Err: errors.New("used up")}}
	play, groups := w.Chain.run, []any{}
	w.Chain.run = func(ctx context.Context, r *runner.Runner, req agent.Request, out agent.Output) (agent.Result, error) {
		groups = append(groups, ctx.Value(groupKey{}))
		return play(ctx, r, req, out)
	}
	if _, err := w.Run(t.Context(), agent.Request{Runtime: "alpha", Prompt: "x", Env: []string{"OF_THE_REQUEST=yes"}, Workdir: w.dir}, agent.Output{}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(groups, []any{"yes", "yes"}) || len(g.ended) != 1 || g.ended[0] != nil {
		t.Errorf("groups %v, ended with %v", groups, g.ended)
	}
}
