package fallback_test

import (
	"context"
	"fmt"
	"log"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/fallback"
	"github.com/busdk/bus-agent/runner"
)

// Codex answers where Claude Code has no quota left, and Gemini where Codex has none.
func ExampleChain() {
	r := &fallback.Chain{
		Runner:   new(runner.Runner),
		Runtimes: []string{"codex", "gemini"},
	}
	result, err := r.Run(context.Background(), agent.Request{
		Runtime: "claude",
		Prompt:  "Summarize README.md",
		Access:  agent.AccessRead,
	}, agent.Output{})
	for _, tried := range result.Attempts {
		fmt.Println(tried.Error)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Runtime, result.Text)
}
