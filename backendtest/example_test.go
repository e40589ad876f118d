package backendtest_test

import (
	"errors"
	"fmt"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
)

func ExampleCheck() {
	err := backendtest.Check(registry.Runtime{
		ID: "mine", Name: "My CLI", Executables: []string{"mine"}, InstallURL: "https://example.com/mine",
		Run: registry.Use{
			Options: registry.Options{Access: []agent.Access{agent.AccessWrite}},
			Command: func(inv registry.Invocation) (agent.Command, error) {
				return agent.Command{Stdin: inv.Prompt}, nil // where are r.Args?
			},
		},
		Decoder: formatters.Generic,
	})
	var failure *backendtest.Failure
	if errors.As(err, &failure) {
		fmt.Println(failure)
	}
	// Output:
	// arguments: The caller's own arguments reach the CLI as they are, together and in order. Broken: mine was started with []
}
