package preferences_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/preferences"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/runner"
)

// useTemp makes the examples keep their preferences in a temporary file.
func useTemp() (remove func()) {
	dir, err := os.MkdirTemp("", "preferences")
	if err != nil {
		log.Fatal(err)
	}
	os.Setenv("BUS_PREFERENCES_PATH", filepath.Join(dir, "preferences.json"))
	return func() {
		os.Unsetenv("BUS_PREFERENCES_PATH")
		os.RemoveAll(dir)
	}
}

func ExampleUser() {
	defer useTemp()()
	r := runner.Runner{Preferences: preferences.User()}
	_, ok, err := r.Preferences.Get(context.Background(), runner.KeyRuntime)
	fmt.Println(ok, err)
	// Output: false <nil>
}

func ExampleSetDefaultRuntime() {
	defer useTemp()()
	ctx := context.Background()
	if err := preferences.SetDefaultRuntime(ctx, "codex:local"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(preferences.GetDefaultRuntime(ctx))
	// Output: codex:local <nil>
}

func ExampleGetDefaultRunConfig() {
	defer useTemp()()
	ctx := context.Background()
	for _, err := range []error{
		preferences.SetDefaultModel(ctx, "gpt-5"),
		preferences.SetDefaultVerbosity(ctx, agent.VerbosityLow),
		preferences.SetDefaultTimeout(ctx, 90*time.Minute),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}
	config, err := preferences.GetDefaultRunConfig(ctx)
	fmt.Printf("%q %q %v %v\n", config.Model, config.OutputFormat, config.Timeout, err)
	// Output: "gpt-5" "text" 1h30m0s <nil>
}

func ExampleSetDefaultReasoningEffortForModel() {
	defer useTemp()()
	err := preferences.SetDefaultReasoningEffortForModel(context.Background(), "gpt-5", "extreme")
	fmt.Println(err)
	// Output: model reasoning effort "extreme" is not one of minimal, low, medium, high, xhigh
}

func ExampleSetRuntimeDefinition() {
	defer useTemp()()
	definition := json.RawMessage(`{"executables": ["aider"], "output": "text"}`)
	fmt.Println(preferences.SetRuntimeDefinition(context.Background(), "aider", definition))
	// Output: <nil>
}

func ExampleList() {
	defer useTemp()()
	ctx := context.Background()
	for _, err := range []error{
		preferences.SetDefaultModel(ctx, "auto"),
		preferences.SetDefaultOrder(ctx, []string{"gemini", "codex"}),
		preferences.SetDefaultOutputFormat(ctx, agent.OutputNDJSON),
		preferences.Unset(ctx, runner.KeyOutputFormat),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}
	items, err := preferences.List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range items {
		fmt.Printf("%s=%s\n", item.Key, item.Value)
	}
	// Output:
	// bus-agent.model="auto"
	// bus-agent.order=["gemini","codex"]
}

func ExampleRegistry() {
	defer useTemp()()
	ctx := context.Background()
	definition := json.RawMessage(`{"executables": ["mine"], "install_url": "https://example.com/mine"}`)
	if err := preferences.SetRuntimeDefinition(ctx, "mine", definition); err != nil {
		log.Fatal(err)
	}
	// A program usually passes registry.Default() or a registry it has filled.
	all, warnings, err := preferences.Registry(ctx, new(registry.Registry))
	if err != nil {
		log.Fatal(err)
	}
	r := runner.Runner{Registry: all, Preferences: preferences.User()}
	fmt.Println(r.Registry.Tokens(), len(warnings))
	// Output: [mine] 0
}
