package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
	"github.com/google/go-cmp/cmp"
)

// prefs are preferences in memory.
type prefs map[string]string

func (p prefs) Get(_ context.Context, key string) (json.RawMessage, bool, error) {
	value, ok := p[key]
	if ok && value == "broken" {
		return nil, false, errors.New("file is malformed")
	}
	return json.RawMessage(value), ok, nil
}

func ids(detected []runner.Detected) (available []string) {
	for _, d := range detected {
		if d.Available() {
			available = append(available, d.Runtime.ID)
		}
	}
	return available
}

// checkDetected checks which runtimes are available after set, which may be nil, and that
// all are reported.
func checkDetected(t *testing.T, b *bench, set func(*runner.Runner), want []string) {
	t.Helper()
	if set != nil {
		set(&b.Runner)
	}
	detected, err := b.Detect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, ids(detected)); diff != "" {
		t.Error(diff)
	}
	if len(detected) != 3 {
		t.Errorf("%d runtimes reported, want all 3", len(detected))
	}
}

func TestDetectOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		installed []string
		env       []string
		prefs     prefs
		set       func(*runner.Runner)
		want      []string
	}{
		"alphabetical":                     {installed: []string{"gamma", "alpha", "beta"}, want: []string{"alpha", "beta", "gamma"}},
		"only what is in PATH":             {installed: []string{"gamma"}, want: []string{"gamma"}},
		"none":                             {},
		"ordered first, then the rest":     {installed: []string{"gamma", "alpha", "beta"}, env: []string{"BUS_AGENT_ORDER=gamma"}, want: []string{"gamma", "alpha", "beta"}},
		"variable before preference":       {installed: []string{"gamma", "alpha"}, env: []string{"BUS_AGENT_ORDER=gamma,alpha"}, prefs: prefs{runner.KeyOrder: `["alpha","gamma"]`}, want: []string{"gamma", "alpha"}},
		"empty variable is unset":          {installed: []string{"gamma", "alpha"}, env: []string{"BUS_AGENT_ORDER="}, prefs: prefs{runner.KeyOrder: `["gamma"]`}, want: []string{"gamma", "alpha"}},
		"call before variable":             {installed: []string{"gamma", "alpha"}, env: []string{"BUS_AGENT_ORDER=gamma"}, set: func(r *runner.Runner) { r.Order = []string{"alpha"} }, want: []string{"alpha", "gamma"}},
		"disabled":                         {installed: []string{"gamma", "alpha"}, env: []string{"BUS_AGENT_DISABLE= alpha ,"}, want: []string{"gamma"}},
		"enabled only":                     {installed: []string{"gamma", "alpha"}, prefs: prefs{runner.KeyEnable: `["gamma"]`}, want: []string{"gamma"}},
		"disable beats enable":             {installed: []string{"gamma", "alpha"}, env: []string{"BUS_AGENT_ENABLE=alpha,gamma", "BUS_AGENT_DISABLE=gamma"}, want: []string{"alpha"}},
		"an empty enable list means none":  {installed: []string{"gamma"}, prefs: prefs{runner.KeyEnable: `[]`}},
		"each list has its own first":      {installed: []string{"gamma", "alpha"}, env: []string{"BUS_AGENT_ORDER=gamma"}, prefs: prefs{runner.KeyDisable: `["alpha"]`}, want: []string{"gamma"}},
		"a last choice":                    {installed: []string{"gamma", "alpha", "beta"}, set: lastChoice, want: []string{"beta", "gamma", "alpha"}},
		"a last choice that is ordered":    {installed: []string{"gamma", "alpha"}, env: []string{"BUS_AGENT_ORDER=alpha"}, set: lastChoice, want: []string{"alpha", "gamma"}},
		"unreadable preferences are empty": {installed: []string{"alpha"}, prefs: prefs{runner.KeyOrder: "broken"}, want: []string{"alpha"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.installed...)
			b.Environ = append(b.Environ, c.env...)
			b.Preferences = c.prefs
			checkDetected(t, b, c.set, c.want)
			if c.prefs[runner.KeyOrder] == "broken" && len(b.warnings) != 1 {
				t.Errorf("warnings = %q, want one", b.warnings)
			}
		})
	}
}

// lastChoice makes alpha a last choice.
func lastChoice(r *runner.Runner) {
	rt := fakeRuntime("alpha")
	rt.LastChoice = true
	if err := r.Registry.Replace(rt); err != nil {
		panic(err)
	}
}

// Builds with different runtimes share the lists of a user.
func TestListsIgnoreUnknownRuntimes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env     string
		prefs   prefs
		set     func(*runner.Runner)
		want    []string // available
		warning string
		repair  string
	}{
		"order":       {repair: `; set it again, or remove it with "bus-agent unset bus-agent.order"`, prefs: prefs{runner.KeyOrder: `["delta","gamma","alpha"]`}, want: []string{"gamma", "alpha"}, warning: `order list (bus-agent.order): unknown runtime "delta" (known: alpha, `},
		"disable":     {repair: "; change or unset BUS_AGENT_DISABLE", env: "BUS_AGENT_DISABLE=delta,alpha", want: []string{"gamma"}, warning: `disable list (BUS_AGENT_DISABLE): unknown runtime "delta"`},
		"enable":      {repair: "; change or unset BUS_AGENT_ENABLE", env: "BUS_AGENT_ENABLE=delta,alpha", want: []string{"alpha"}, warning: `enable list (BUS_AGENT_ENABLE): unknown runtime "delta"`},
		"enable none": {repair: "; change or unset BUS_AGENT_ENABLE", env: "BUS_AGENT_ENABLE=delta", warning: `enable list (BUS_AGENT_ENABLE): unknown runtime "delta"`},
		"call":        {set: func(r *runner.Runner) { r.Disable = []string{"delta"} }, want: []string{"alpha", "gamma"}, warning: `disable list (call): unknown runtime "delta"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "alpha", "gamma")
			b.Environ = append(b.Environ, c.env)
			b.Preferences = c.prefs
			checkDetected(t, b, c.set, c.want)
			if len(b.warnings) != 1 || !strings.HasPrefix(b.warnings[0], c.warning) || !strings.HasSuffix(b.warnings[0], "; ignoring it"+c.repair) {
				t.Errorf("warnings = %q, want %q", b.warnings, c.warning)
			}
		})
	}
}

// A bad value fails only what needs it.
func TestBadOrderDoesNotStopNamedRuntime(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	b.Preferences = prefs{runner.KeyOrder: `["Alpha"]`}
	if sel, err := b.Resolve(t.Context(), "alpha"); err != nil || sel.Token != "alpha" {
		t.Errorf("Resolve = %q, %v", sel.Token, err)
	}
	if _, err := b.Resolve(t.Context(), ""); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), `"bus-agent unset bus-agent.order"`) {
		t.Errorf("Resolve without a name = %v, want how to repair the order", err)
	}
	detected, err := b.Detect(t.Context())
	if !errors.Is(err, agent.ErrUsage) || len(detected) != 3 {
		t.Errorf("Detect = %d runtimes, %v; want all, with the error", len(detected), err)
	}
}

func TestDetectRefusesBadLists(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env   string
		prefs prefs
		want  string
	}{
		"order":    {env: "BUS_AGENT_ORDER=alpha,Delta", want: "BUS_AGENT_ORDER"},
		"disable":  {env: "BUS_AGENT_DISABLE=../delta", want: "BUS_AGENT_DISABLE"},
		"variant":  {env: "BUS_AGENT_DISABLE=alpha:local", want: "variant"},
		"pref":     {prefs: prefs{runner.KeyEnable: `["de lta"]`}, want: runner.KeyEnable},
		"no array": {prefs: prefs{runner.KeyEnable: `"alpha"`}, want: runner.KeyEnable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "alpha")
			b.Environ = append(b.Environ, c.env)
			b.Preferences = c.prefs
			_, err := b.Detect(t.Context())
			if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Detect = %v, want a usage error that names %s", err, c.want)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		installed []string
		token     string
		env       []string
		prefs     prefs
		sources   runner.Sources
		require   bool

		want     string // token and source
		kind     error
		text     string
		warnings int
	}{
		"call first":              {token: "beta", env: []string{"BUS_AGENT=alpha"}, want: "beta call"},
		"variant":                 {token: "beta:local", want: "beta:local call"},
		"variable":                {env: []string{"BUS_AGENT=beta"}, prefs: prefs{runner.KeyRuntime: `"gamma"`}, want: "beta BUS_AGENT"},
		"empty variable is unset": {env: []string{"BUS_AGENT="}, prefs: prefs{runner.KeyRuntime: `"gamma"`}, want: "gamma " + runner.KeyRuntime},
		"preference":              {prefs: prefs{runner.KeyRuntime: `"gamma"`}, want: "gamma " + runner.KeyRuntime},
		"first available":         {want: "alpha first available"},
		"first in order":          {env: []string{"BUS_AGENT_ORDER=gamma"}, want: "gamma first available"},

		"bus-dev's variable":             {sources: runner.BusDev(), env: []string{"BUS_DEV_AGENT=gamma", "BUS_AGENT=beta"}, want: "gamma BUS_DEV_AGENT"},
		"bus-dev: variables, then keys":  {sources: runner.BusDev(), env: []string{"BUS_AGENT=beta"}, prefs: prefs{"bus-dev.agent": `"gamma"`}, want: "beta BUS_AGENT"},
		"bus-dev's key before ours":      {sources: runner.BusDev(), prefs: prefs{"bus-dev.agent": `"gamma"`, runner.KeyRuntime: `"beta"`}, want: "gamma bus-dev.agent"},
		"bus-dev's variable is its own":  {env: []string{"BUS_DEV_AGENT=gamma"}, prefs: prefs{"bus-dev.agent": `"gamma"`}, want: "alpha first available"},
		"bus-run's variable":             {sources: runner.BusRun(), env: []string{"BUS_RUN_AGENT=gamma"}, want: "gamma BUS_RUN_AGENT"},
		"disabled call falls through":    {token: "alpha", env: []string{"BUS_AGENT_DISABLE=alpha", "BUS_AGENT=beta"}, want: "beta BUS_AGENT", warnings: 1},
		"disabled variant falls through": {token: "alpha:local", env: []string{"BUS_AGENT_DISABLE=alpha"}, want: "beta first available", warnings: 1},
		"every source disabled":          {token: "alpha", env: []string{"BUS_AGENT_DISABLE=alpha,beta", "BUS_AGENT=beta"}, prefs: prefs{runner.KeyRuntime: `"alpha"`}, want: "gamma first available", warnings: 3},

		"unknown call":            {token: "delta", kind: agent.ErrUsage, text: "delta"},
		"unknown variable":        {env: []string{"BUS_AGENT=delta"}, kind: agent.ErrUsage, text: "BUS_AGENT"},
		"unknown preference":      {prefs: prefs{runner.KeyRuntime: `"delta"`}, kind: agent.ErrUsage, text: runner.KeyRuntime},
		"preference not a string": {prefs: prefs{runner.KeyRuntime: `5`}, kind: agent.ErrUsage, text: runner.KeyRuntime},
		"named, not installed":    {installed: []string{"alpha"}, token: "beta", kind: agent.ErrNotInstalled, text: "https://example.com/beta"},
		"variable, not installed": {installed: []string{"alpha"}, env: []string{"BUS_AGENT=beta"}, kind: agent.ErrNotInstalled, text: "https://example.com/beta"},
		"none installed":          {installed: []string{}, kind: agent.ErrNoneAvailable, text: "https://example.com/gamma"},
		"none enabled":            {env: []string{"BUS_AGENT_ENABLE=beta", "BUS_AGENT_DISABLE=beta"}, kind: agent.ErrNoneAvailable, text: "disabled"},
		"nothing configured":      {require: true, kind: agent.ErrNoneAvailable, text: "available: alpha, beta, gamma"},
		"configured":              {require: true, env: []string{"BUS_AGENT=beta"}, want: "beta BUS_AGENT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.installed == nil {
				c.installed = []string{"alpha", "beta", "gamma"}
			}
			b := newBench(t, c.installed...)
			b.Environ = append(b.Environ, c.env...)
			b.Preferences = c.prefs
			b.RequireConfigured = c.require
			if c.sources.Runtime != nil {
				b.Sources = &c.sources
			}
			sel, err := b.Resolve(t.Context(), c.token)
			if c.kind != nil {
				if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) {
					t.Fatalf("Resolve = %v, want kind %v and text %q", err, c.kind, c.text)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := sel.Token + " " + sel.Source; got != c.want {
				t.Errorf("Resolve = %q, want %q", got, c.want)
			}
			if len(sel.Warnings) != c.warnings || len(b.warnings) != c.warnings {
				t.Errorf("warnings = %q, sent %q, want %d", sel.Warnings, b.warnings, c.warnings)
			}
			if want := filepath.Join(b.path, sel.Runtime.ID); sel.Path != want {
				t.Errorf("path = %s, want %s", sel.Path, want)
			}
		})
	}
}

func TestResolveRefusesRelativePath(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Environ = []string{"PATH=.:bin:"}
	if _, err := b.Resolve(t.Context(), "alpha"); !errors.Is(err, agent.ErrNotInstalled) {
		t.Errorf("Resolve = %v, want not installed", err)
	}
}

// An executable that is refused, or does not start, can be replaced by one that works.
func TestUnusableExecutableNamesWhereToGetIt(t *testing.T) {
	t.Parallel()
	const url = "https://example.com/alpha"
	b := newBench(t, "alpha")
	b.Workdir = b.path
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		refused := b.Runner
		refused.Environ = []string{"PATH=" + b.path}
		_, err := refused.Resolve(t.Context(), "alpha")
		if !errors.Is(err, agent.ErrNotInstalled) || !strings.HasSuffix(err.Error(), "; or get it at "+url) {
			t.Errorf("Resolve = %v, want the URL", err)
		}
		_, err = refused.Resolve(t.Context(), "")
		if !errors.Is(err, agent.ErrNoneAvailable) || !strings.Contains(err.Error(), "; or get it at "+url) {
			t.Errorf("Resolve without a name = %v, want the URL", err)
		}
	})
	t.Run("without interpreter", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		if err := os.WriteFile(filepath.Join(b.path, "alpha"), []byte("#!/nonexistent/interpreter\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := b.Run(t.Context(), agent.Request{Runtime: "alpha", Prompt: "p", Workdir: t.TempDir()}, agent.Output{})
		if !errors.Is(err, agent.ErrAgent) || !strings.Contains(err.Error(), "interpreter") || !strings.HasSuffix(err.Error(), url) {
			t.Errorf("Run = %v, want the URL", err)
		}
		rt, _ := b.Registry.Lookup("alpha")
		if _, err = runner.Version(t.Context(), rt, filepath.Join(b.path, "alpha"), []string{"TMPDIR=" + t.TempDir()}); err == nil || !strings.HasSuffix(err.Error(), url) {
			t.Errorf("Version = %v, want the URL", err)
		}
	})
}

func TestDetectSkipsFilesThatCannotRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := os.WriteFile(filepath.Join(b.path, "alpha"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(b.path, "beta"), 0o755); err != nil {
		t.Fatal(err)
	}
	detected, err := b.Detect(t.Context())
	if err != nil || len(ids(detected)) != 0 {
		t.Errorf("Detect = %q, %v, want none", ids(detected), err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	const forModel = runner.KeyReasoningEffort + "_for_model"
	for name, c := range map[string]struct {
		runtime string
		req     agent.Request
		output  agent.OutputFormat
		env     []string
		prefs   prefs
		want    string
		err     string
	}{
		"built-in":                 {want: "auto/built-in / / text/built-in 1h0m0s/built-in"},
		"call":                     {req: agent.Request{Model: "m", ReasoningEffort: "low", Verbosity: "high", Timeout: time.Second}, output: "ndjson", want: "m/call low/call high/call ndjson/call 1s/call"},
		"variables":                {env: []string{"BUS_AGENT_MODEL=m", "BUS_AGENT_MODEL_REASONING_EFFORT=low", "BUS_AGENT_MODEL_VERBOSITY=high", "BUS_AGENT_OUTPUT_FORMAT=events", "BUS_AGENT_TIMEOUT=5m"}, want: "m/BUS_AGENT_MODEL low/BUS_AGENT_MODEL_REASONING_EFFORT high/BUS_AGENT_MODEL_VERBOSITY events/BUS_AGENT_OUTPUT_FORMAT 5m0s/BUS_AGENT_TIMEOUT"},
		"preferences":              {prefs: prefs{runner.KeyModel: `"m"`, runner.KeyTimeout: `"90s"`, runner.KeyVerbosity: `"low"`}, want: "m/bus-agent.model / low/bus-agent.model_verbosity text/built-in 1m30s/bus-agent.timeout"},
		"per-model before plain":   {req: agent.Request{Model: "gpt-5.5"}, prefs: prefs{runner.KeyReasoningEffort: `"low"`, forModel + ".gpt-5.5": `"high"`}, want: "gpt-5.5/call high/" + forModel + ".gpt-5.5 / text/built-in 1h0m0s/built-in"},
		"per-model name encoded":   {req: agent.Request{Model: "gpt-oss:20b"}, prefs: prefs{forModel + ".hex.6770742d6f73733a323062": `"high"`}, want: "gpt-oss:20b/call high/" + forModel + ".gpt-oss:20b / text/built-in 1h0m0s/built-in"},
		"variable before model":    {req: agent.Request{Model: "m"}, env: []string{"BUS_AGENT_MODEL_REASONING_EFFORT=low"}, prefs: prefs{forModel + ".m": `"high"`}, want: "m/call low/BUS_AGENT_MODEL_REASONING_EFFORT / text/built-in 1h0m0s/built-in"},
		"cursor's variables":       {env: []string{"CURSOR_AGENT_OUTPUT_FORMAT=ndjson", "CURSOR_AGENT_TIMEOUT=3s", "CURSOR_AGENT_MODEL=m"}, want: "auto/built-in / / ndjson/CURSOR_AGENT_OUTPUT_FORMAT 3s/CURSOR_AGENT_TIMEOUT"},
		"cursor's model":           {runtime: "cursor", env: []string{"CURSOR_AGENT_MODEL=m"}, want: "m/CURSOR_AGENT_MODEL / / text/built-in 1h0m0s/built-in"},
		"bad effort":               {env: []string{"BUS_AGENT_MODEL_REASONING_EFFORT=banana"}, err: "BUS_AGENT_MODEL_REASONING_EFFORT"},
		"bad timeout":              {prefs: prefs{runner.KeyTimeout: `"-5m"`}, err: runner.KeyTimeout},
		"empty model":              {prefs: prefs{runner.KeyModel: `""`}, err: runner.KeyModel},
		"bad output":               {output: "xml", err: "xml"},
		"negative timeout in call": {req: agent.Request{Timeout: -1}, err: "not positive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.Environ = append(b.Environ, c.env...)
			b.Preferences = c.prefs
			s := b.Settings(t.Context(), c.runtime, c.req, c.output)
			err := errors.Join(s.Model.Err, s.ReasoningEffort.Err, s.Verbosity.Err, s.OutputFormat.Err, s.Timeout.Err)
			if c.err != "" {
				if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("Settings = %v, want a usage error that names %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join([]string{
				s.Model.Value + "/" + s.Model.Source,
				string(s.ReasoningEffort.Value) + "/" + s.ReasoningEffort.Source,
				string(s.Verbosity.Value) + "/" + s.Verbosity.Source,
				string(s.OutputFormat.Value) + "/" + s.OutputFormat.Source,
				s.Timeout.Value.String() + "/" + s.Timeout.Source,
			}, " ")
			if got != c.want {
				t.Errorf("settings = %s\n     want  %s", got, c.want)
			}
		})
	}
}

func TestKeyForModel(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		"gpt-5.1-codex": "p.gpt-5.1-codex",
		"Qwen3":         "p.hex.5177656e33",
		"a/b":           "p.hex.612f62",
		"a..b":          "p.hex.612e2e62",
		".a":            "p.hex.2e61",
		"hex.61":        "p.hex.6865782e3631",
		"hex":           "p.hex",
		"ä":             "p.hex.c3a4",
	} {
		got := runner.KeyForModel("p", model)
		if got != want {
			t.Errorf("KeyForModel(%q) = %s, want %s", model, got, want)
		}
		if back := runner.ModelOfKey(strings.TrimPrefix(got, "p.")); back != model {
			t.Errorf("ModelOfKey(%s) = %q, want %q", got, back, model)
		}
	}
}

// Some CLIs print their version on standard error.
func TestVersionOnStandardError(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"echo 1.2.3 >&2":                    "1.2.3",
		"echo 1.2.3; echo node 22.1.0 >&2":  "1.2.3",
		"echo hello; echo hello again >&2":  "",
		"echo warning >&2; echo v0.1 alpha": "0.1",
		"echo The CLI 1.0.102.":             "1.0.102",
		"echo 1.2.3-rc.1+5, for you":        "1.2.3-rc.1+5",
	} {
		path := filepath.Join(t.TempDir(), "agent")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		got, err := runner.Version(t.Context(), registry.Runtime{}, path, []string{"PATH=/usr/bin:/bin", "TMPDIR=" + t.TempDir()})
		if got != want || errors.Is(err, runner.ErrNoVersion) != (want == "") {
			t.Errorf("%s: Version = %q, %v", script, got, err)
		}
	}
}

func TestNamedOnlyIsNotSelectedAutomatically(t *testing.T) {
	t.Parallel()
	b := newBench(t, "alpha")
	rt, _ := b.Registry.Lookup("alpha")
	rt.NamedOnly = true
	b.Registry = new(registry.Registry)
	if err := b.Registry.Register(rt); err != nil {
		t.Fatal(err)
	}
	if sel, err := b.Resolve(t.Context(), ""); !errors.Is(err, agent.ErrNoneAvailable) || !strings.Contains(err.Error(), "alpha: installed, but used only if you name it") {
		t.Errorf("selected %q, %v", sel.Token, err)
	}
	if sel, err := b.Resolve(t.Context(), "alpha"); err != nil || sel.Runtime.ID != "alpha" {
		t.Errorf("selected %q, %v", sel.Token, err)
	}
	if err := os.Remove(filepath.Join(b.path, "alpha")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Resolve(t.Context(), ""); err == nil || strings.Contains(err.Error(), "alpha") {
		t.Errorf("it is to be installed: %v", err)
	}
}
