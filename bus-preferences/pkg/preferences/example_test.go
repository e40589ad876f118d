package preferences_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/busdk/bus-preferences/pkg/preferences"
)

// useTemp makes an example use a temporary preferences file.
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

func ExampleGet() {
	defer useTemp()()
	ctx := context.Background()

	if err := preferences.SetJSON(ctx, "bus-dev.ui", json.RawMessage(`{ "theme": "dark", "size": 12.0 }`)); err != nil {
		log.Fatal(err)
	}
	value, ok, err := preferences.Get(ctx, "bus-dev.ui")
	fmt.Println(string(value), ok, err)
	// Output: {"size":12.0,"theme":"dark"} true <nil>
}

func ExampleGetString() {
	defer useTemp()()
	ctx := context.Background()

	if err := preferences.SetString(ctx, "bus-agent.runtime", "codex"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(preferences.GetString(ctx, "bus-agent.runtime"))
	fmt.Println(preferences.GetString(ctx, "bus-agent.model"))
	// Output:
	// codex true <nil>
	//  false <nil>
}

func ExampleSetString() {
	defer useTemp()()
	fmt.Println(preferences.SetString(context.Background(), "Bus Agent", "codex"))
	// Output: invalid preference key "Bus Agent": use segments of a-z, 0-9, - and _ joined by single dots
}

func ExampleSetJSON() {
	defer useTemp()()
	ctx := context.Background()
	fmt.Println(preferences.SetJSON(ctx, "bus-agent.order", json.RawMessage(`["codex", "claude"]`)))
	fmt.Println(preferences.SetJSON(ctx, "bus-agent.order", json.RawMessage(`["codex"`)))
	// Output:
	// <nil>
	// invalid JSON value for bus-agent.order: line 1: unexpected end of JSON input
}

func ExampleUnset() {
	defer useTemp()()
	fmt.Println(preferences.Unset(context.Background(), "bus-agent.runtime"))
	// Output: <nil>
}

func ExampleList() {
	defer useTemp()()
	ctx := context.Background()
	for key, value := range map[string]string{"bus-agent.model": "auto", "bus-agent.runtime": "codex", "bus-dev.agent": "claude"} {
		if err := preferences.SetString(ctx, key, value); err != nil {
			log.Fatal(err)
		}
	}

	items, err := preferences.List(ctx, "bus-agent")
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range items {
		fmt.Printf("%s=%s\n", item.Key, item.Value)
	}
	// Output:
	// bus-agent.model="auto"
	// bus-agent.runtime="codex"
}
