package described_test

import (
	"fmt"

	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
)

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
