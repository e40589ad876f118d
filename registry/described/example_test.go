package described_test

import (
	"fmt"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
)

func ExampleNew() {
	rt, err := described.New("mine", described.Definition{
		Executables: []string{"mine"},
		InstallURL:  "https://example.com/mine",
		Args:        []described.Argument{{"run"}, {"{access}"}, {"{effort}"}},
		Access:      map[agent.Access]described.Setting{agent.AccessRead: {Args: []described.Argument{{"--plan"}}, Mode: "plan"}},
		Efforts:     map[agent.ReasoningEffort]described.Setting{agent.EffortHigh: {Args: []described.Argument{{"--think", "max"}}}},
		ACP:         &described.ACP{Args: []described.Argument{{"acp"}, {"{effort}"}}},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	inv := registry.Invocation{Access: agent.AccessRead, ReasoningEffort: agent.EffortHigh}
	for _, use := range []registry.Use{rt.Run, rt.Session.Use} {
		command, err := use.Command(inv)
		fmt.Printf("%q %v\n", command.Args, err)
	}
	// Output:
	// ["run" "--plan" "--think" "max"] <nil>
	// ["acp" "--think" "max"] <nil>
}

func ExampleRuntime() {
	rt, err := described.Runtime("mine", []byte(`{
		"executables": ["mine"],
		"install_url": "https://example.com/mine",
		"args": ["run", ["--model", "{model}"], "--", "{prompt}"],
		"prompt": "argument"
	}`), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	command, err := rt.Run.Command(registry.Invocation{Prompt: "Say hello.", Workdir: "/tmp"})
	fmt.Printf("%q %v\n", command.Args, err)
	// Output: ["run" "--" "Say hello."] <nil>
}
