package preferences_test

import (
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/runner"
	"github.com/google/go-cmp/cmp"
)

// useFile points the preferences at a file of the test's own, which does not
// exist yet. It sets a variable, so these tests are not parallel.
func useFile(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "preferences.json")
	t.Setenv("BUS_PREFERENCES_PATH", path)
	return path
}

func writeFile(t *testing.T, path, values string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(`{"version":1,"values":`+values+`}`), 0o600); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func stored(t *testing.T) map[string]string {
	t.Helper()
	items, err := preferences.List(t.Context())
	check(t, err)
	got := make(map[string]string)
	for _, item := range items {
		got[item.Key] = string(item.Value)
	}
	return got
}

func TestEverySetterWritesItsKey(t *testing.T) {
	useFile(t)
	ctx := t.Context()
	for _, err := range []error{
		preferences.SetDefaultRuntime(ctx, "codex:local"),
		preferences.SetDefaultModel(ctx, "gpt-oss:20b"),
		preferences.SetDefaultReasoningEffort(ctx, agent.EffortXHigh),
		preferences.SetDefaultVerbosity(ctx, agent.VerbosityLow),
		preferences.SetDefaultReasoningEffortForModel(ctx, "gpt-5.1-codex", agent.EffortMinimal),
		preferences.SetDefaultVerbosityForModel(ctx, "gpt-oss:20b", agent.VerbosityHigh),
		preferences.SetDefaultOutputFormat(ctx, agent.OutputEvents),
		preferences.SetDefaultTimeout(ctx, time.Hour),
		preferences.SetDefaultOrder(ctx, []string{"gemini", "codex"}),
		preferences.SetDefaultEnable(ctx, []string{"codex"}),
		preferences.SetDefaultDisable(ctx, []string{"my-agent-2"}),
		preferences.SetDefaultFallback(ctx, []string{"codex:local", "gemini"}),
		preferences.SetRuntimeDefinition(ctx, "aider", json.RawMessage(`{"executables": ["aider"]}`)),
	} {
		check(t, err)
	}
	want := map[string]string{
		"bus-agent.runtime":                                              `"codex:local"`,
		"bus-agent.model":                                                `"gpt-oss:20b"`,
		"bus-agent.model_reasoning_effort":                               `"xhigh"`,
		"bus-agent.model_verbosity":                                      `"low"`,
		"bus-agent.model_reasoning_effort_for_model.gpt-5.1-codex":       `"minimal"`,
		"bus-agent.model_verbosity_for_model.hex.6770742d6f73733a323062": `"high"`,
		"bus-agent.output_format":                                        `"events"`,
		"bus-agent.timeout":                                              `"60m"`,
		"bus-agent.order":                                                `["gemini","codex"]`,
		"bus-agent.enable":                                               `["codex"]`,
		"bus-agent.disable":                                              `["my-agent-2"]`,
		"bus-agent.fallback":                                             `["codex:local","gemini"]`,
		"bus-agent.runtimes.aider":                                       `{"executables":["aider"]}`,
	}
	if diff := cmp.Diff(want, stored(t)); diff != "" {
		t.Error(diff)
	}

	runtime, err := preferences.GetDefaultRuntime(ctx)
	if runtime != "codex:local" || err != nil {
		t.Errorf("GetDefaultRuntime = %q, %v", runtime, err)
	}
	config, err := preferences.GetDefaultRunConfig(ctx)
	check(t, err)
	if diff := cmp.Diff(preferences.RunConfig{
		Model: "gpt-oss:20b", ReasoningEffort: agent.EffortXHigh, Verbosity: agent.VerbosityLow,
		OutputFormat: agent.OutputEvents, Timeout: time.Hour,
	}, config); diff != "" {
		t.Error(diff)
	}
	raw, ok, err := preferences.User().Get(ctx, runner.KeyForModel(runner.KeyVerbosityForModel, "gpt-oss:20b"))
	if string(raw) != `"high"` || !ok || err != nil {
		t.Errorf("Store().Get = %s, %v, %v", raw, ok, err)
	}

	for key := range want {
		check(t, preferences.Unset(ctx, key))
	}
	check(t, preferences.Unset(ctx, "bus-agent.model"))
	if got := stored(t); len(got) != 0 {
		t.Errorf("left after Unset: %v", got)
	}
}

func TestNothingIsStored(t *testing.T) {
	path := useFile(t)
	ctx := t.Context()
	if runtime, err := preferences.GetDefaultRuntime(ctx); runtime != "" || err != nil {
		t.Errorf("GetDefaultRuntime = %q, %v", runtime, err)
	}
	if config, err := preferences.GetDefaultRunConfig(ctx); config != (preferences.RunConfig{Model: "auto", OutputFormat: "text", Timeout: 60 * time.Minute}) || err != nil {
		t.Errorf("GetDefaultRunConfig = %v, %v", config, err)
	}
	if _, ok, err := preferences.User().Get(ctx, runner.KeyRuntime); ok || err != nil {
		t.Errorf("Store().Get = %v, %v", ok, err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("reading made the file: %v", err)
	}
}

func TestWrongValuesAreUsageErrorsAndNotWritten(t *testing.T) {
	path := useFile(t)
	deep := json.RawMessage(`{"a":[{"k":1,"k":2}]}`)
	for _, test := range []struct {
		name string
		set  func(context.Context) error
		want string // part of the error
	}{
		{"empty runtime", func(ctx context.Context) error { return preferences.SetDefaultRuntime(ctx, "") }, `""`},
		{"runtime in upper case", func(ctx context.Context) error { return preferences.SetDefaultRuntime(ctx, "Codex") }, "Codex"},
		{"runtime that begins with a digit", func(ctx context.Context) error { return preferences.SetDefaultRuntime(ctx, "1st") }, "1st"},
		{"empty variant", func(ctx context.Context) error { return preferences.SetDefaultRuntime(ctx, "codex:") }, "codex:"},
		{"two variants", func(ctx context.Context) error { return preferences.SetDefaultRuntime(ctx, "codex:a:b") }, "codex:a:b"},
		{"empty model", func(ctx context.Context) error { return preferences.SetDefaultModel(ctx, "") }, "empty"},
		{"blank model", func(ctx context.Context) error { return preferences.SetDefaultModel(ctx, " ") }, "empty"},
		{"model with a line break", func(ctx context.Context) error { return preferences.SetDefaultModel(ctx, "a\nb") }, `a\nb`},
		{"model that is not UTF-8", func(ctx context.Context) error { return preferences.SetDefaultModel(ctx, "\xff") }, `\xff`},
		{"unknown effort", func(ctx context.Context) error { return preferences.SetDefaultReasoningEffort(ctx, "huge") }, "huge"},
		{"unknown verbosity", func(ctx context.Context) error { return preferences.SetDefaultVerbosity(ctx, "") }, "verbosity"},
		{"effort for no model", func(ctx context.Context) error {
			return preferences.SetDefaultReasoningEffortForModel(ctx, "", agent.EffortLow)
		}, "empty"},
		{"unknown effort for a model", func(ctx context.Context) error { return preferences.SetDefaultReasoningEffortForModel(ctx, "m", "x") }, "x"},
		{"verbosity for no model", func(ctx context.Context) error {
			return preferences.SetDefaultVerbosityForModel(ctx, "", agent.VerbosityLow)
		}, "empty"},
		{"unknown verbosity for a model", func(ctx context.Context) error { return preferences.SetDefaultVerbosityForModel(ctx, "m", "xhigh") }, "xhigh"},
		{"unknown format", func(ctx context.Context) error { return preferences.SetDefaultOutputFormat(ctx, "json") }, "json"},
		{"no time", func(ctx context.Context) error { return preferences.SetDefaultTimeout(ctx, 0) }, "positive"},
		{"negative time", func(ctx context.Context) error { return preferences.SetDefaultTimeout(ctx, -time.Minute) }, "-1m"},
		{"empty order", func(ctx context.Context) error { return preferences.SetDefaultOrder(ctx, nil) }, "bus-agent.order"},
		{"variant in the order", func(ctx context.Context) error { return preferences.SetDefaultOrder(ctx, []string{"codex:local"}) }, "codex:local"},
		{"wrong name in the enable list", func(ctx context.Context) error { return preferences.SetDefaultEnable(ctx, []string{"codex", ""}) }, `""`},
		{"runtime disabled twice", func(ctx context.Context) error { return preferences.SetDefaultDisable(ctx, []string{"a", "b", "a"}) }, "twice"},
		{"empty fallback", func(ctx context.Context) error { return preferences.SetDefaultFallback(ctx, nil) }, "bus-agent.fallback"},
		{"wrong name in the fallback", func(ctx context.Context) error {
			return preferences.SetDefaultFallback(ctx, []string{"codex", "Codex"})
		}, `"Codex"`},
		{"fallback to one runtime twice", func(ctx context.Context) error {
			return preferences.SetDefaultFallback(ctx, []string{"a:b", "a:b"})
		}, "twice"},
		{"definition of no runtime", func(ctx context.Context) error {
			return preferences.SetRuntimeDefinition(ctx, "a.b", json.RawMessage("{}"))
		}, "a.b"},
		{"definition that is not JSON", func(ctx context.Context) error {
			return preferences.SetRuntimeDefinition(ctx, "a", json.RawMessage("{"))
		}, "runtime a"},
		{"definition that is empty", func(ctx context.Context) error { return preferences.SetRuntimeDefinition(ctx, "a", nil) }, "runtime a"},
		{"definition that is not an object", func(ctx context.Context) error {
			return preferences.SetRuntimeDefinition(ctx, "a", json.RawMessage(" []"))
		}, "object"},
		{"definition that is not UTF-8", func(ctx context.Context) error {
			return preferences.SetRuntimeDefinition(ctx, "a", json.RawMessage("{\"a\":\"\xff\"}"))
		}, "UTF-8"},
		{"definition with a repeated key", func(ctx context.Context) error { return preferences.SetRuntimeDefinition(ctx, "a", deep) }, `"k" is repeated`},
		{"key of another module", func(ctx context.Context) error { return preferences.Unset(ctx, "bus-dev.agent") }, "bus-dev.agent"},
		{"key that only begins alike", func(ctx context.Context) error { return preferences.Unset(ctx, "bus-agents.model") }, "bus-agents.model"},
		{"invalid key", func(ctx context.Context) error { return preferences.Unset(ctx, "bus-agent.a..b") }, "a..b"},
		{"key with an upper-case letter", func(ctx context.Context) error { return preferences.Unset(ctx, "bus-agent.Model") }, "Model"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.set(t.Context())
			if !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want a usage error with %q", err, test.want)
			}
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("something was written: %v", err)
			}
		})
	}
}

func TestWrongStoredValuesNameTheirKey(t *testing.T) {
	path := useFile(t)
	for values, key := range map[string]string{
		`{"bus-agent.model":5}`:                      runner.KeyModel,
		`{"bus-agent.model":""}`:                     runner.KeyModel,
		`{"bus-agent.model_reasoning_effort":"big"}`: runner.KeyReasoningEffort,
		`{"bus-agent.model_verbosity":null}`:         runner.KeyVerbosity,
		`{"bus-agent.output_format":"yaml"}`:         runner.KeyOutputFormat,
		`{"bus-agent.timeout":"soon"}`:               runner.KeyTimeout,
		`{"bus-agent.timeout":"-1m"}`:                runner.KeyTimeout,
		`{"bus-agent.timeout":60}`:                   runner.KeyTimeout,
	} {
		writeFile(t, path, values)
		if _, err := preferences.GetDefaultRunConfig(t.Context()); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: error = %v, want a usage error with %s", values, err, key)
		}
	}
	for _, values := range []string{`{"bus-agent.runtime":["codex"]}`, `{"bus-agent.runtime":"Codex"}`} {
		writeFile(t, path, values)
		if _, err := preferences.GetDefaultRuntime(t.Context()); !errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), runner.KeyRuntime) {
			t.Errorf("%s: error = %v, want a usage error with %s", values, err, runner.KeyRuntime)
		}
	}
}

func TestListContainsOnlyBusAgent(t *testing.T) {
	path := useFile(t)
	writeFile(t, path, `{"bus-agent.new_thing":{"b": 1},"bus-agents.model":"x","bus-dev.agent":"codex","bus-agent.model":"m"}`)
	want := map[string]string{"bus-agent.new_thing": `{"b":1}`, "bus-agent.model": `"m"`}
	if diff := cmp.Diff(want, stored(t)); diff != "" {
		t.Error(diff)
	}
	check(t, preferences.Unset(t.Context(), "bus-agent.new_thing"))
	delete(want, "bus-agent.new_thing")
	if diff := cmp.Diff(want, stored(t)); diff != "" {
		t.Error(diff)
	}
}

func TestTimeoutsAreStoredInShortForm(t *testing.T) {
	useFile(t)
	for d, want := range map[time.Duration]string{
		time.Hour:                        `"60m"`,
		90 * time.Second:                 `"90s"`,
		1500 * time.Millisecond:          `"1.5s"`,
		time.Hour + 500*time.Millisecond: `"1h0m0.5s"`,
		1:                                `"1ns"`,
	} {
		check(t, preferences.SetDefaultTimeout(t.Context(), d))
		if got := stored(t)[runner.KeyTimeout]; got != want {
			t.Errorf("%v is stored as %s, want %s", d, got, want)
		}
		if config, err := preferences.GetDefaultRunConfig(t.Context()); config.Timeout != d || err != nil {
			t.Errorf("%v is read as %v, %v", d, config.Timeout, err)
		}
	}
}

func TestFileErrorsAreNotUsageErrors(t *testing.T) {
	path := useFile(t)
	ctx := t.Context()
	check(t, os.WriteFile(path, []byte("{"), 0o600))
	_, runtimeErr := preferences.GetDefaultRuntime(ctx)
	_, configErr := preferences.GetDefaultRunConfig(ctx)
	_, listErr := preferences.List(ctx)
	_, _, getErr := preferences.User().Get(ctx, runner.KeyModel)
	for i, err := range []error{
		runtimeErr, configErr, listErr, getErr,
		preferences.SetDefaultModel(ctx, "m"),
		preferences.SetDefaultOrder(ctx, []string{"codex"}),
		preferences.Unset(ctx, runner.KeyModel),
	} {
		if err == nil || errors.Is(err, agent.ErrUsage) || !strings.Contains(err.Error(), path) {
			t.Errorf("%d: error = %v, want one that names the file and is not a usage error", i, err)
		}
	}

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if err := preferences.SetDefaultModel(canceled, "m"); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
}

// Another implementation of bus-preferences has what the contract names and
// perhaps nothing else.
func TestOnlyTheContractOfBusPreferencesIsUsed(t *testing.T) {
	t.Parallel()
	contract := []string{"Get", "GetString", "SetString", "SetJSON", "Unset", "List", "Item"}
	files, err := filepath.Glob("*.go")
	check(t, err)
	used := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		check(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "preferences" {
				used++
				if !slices.Contains(contract, selector.Sel.Name) {
					t.Errorf("%s uses preferences.%s", name, selector.Sel.Name)
				}
			}
			return true
		})
	}
	if used == 0 {
		t.Error("found no use of bus-preferences at all")
	}
}
