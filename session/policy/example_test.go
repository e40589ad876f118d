package policy_test

import (
	"fmt"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/engine"
	"github.com/busdk/bus-agent/session/policy"
)

// Every command of a line must be accepted.
func ExamplePolicy_Decide() {
	p, err := policy.Parse([]byte(`{"rules": [
		{"command": ["go", "test"], "decision": "accept"},
		{"command": ["git", "push"], "decision": "decline"}
	]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range []string{"go test ./...", "go test ./... && git push", "go test ./... > result"} {
		answer := p.Decide(&agent.Tool{Kind: agent.ToolExecute, Command: line}, engine.Start{})
		fmt.Println(line, "=", answer.Decision, answer.Rule)
	}
	// Output:
	// go test ./... = accept 1
	// go test ./... && git push = decline 2
	// go test ./... > result = ask 0
}
