package runner_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
)

// The zero Runner runs the runtimes that the program registers by importing
// github.com/busdk/bus-agent/backends/all or single backends.
func ExampleRunner_Run() {
	var r runner.Runner
	result, err := r.Run(context.Background(), agent.Request{
		Prompt:  "Which license does this repository have?",
		Workdir: "/home/me/project",
		Access:  agent.AccessRead,
	}, agent.Output{})
	if errors.Is(err, agent.ErrNoneAvailable) {
		log.Fatal("install Codex, Claude Code, Gemini CLI or Cursor first")
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Text)
}

// Events reports what the agent does while it runs.
func ExampleRunner_Run_events() {
	var r runner.Runner
	_, err := r.Run(context.Background(), agent.Request{
		Runtime: "claude",
		Prompt:  "Fix the failing test.",
		Workdir: "/home/me/project",
	}, agent.Output{Events: func(e *agent.Event) error {
		switch e.Kind {
		case agent.KindToolCall:
			fmt.Println("calls", e.Tool.Name)
		case agent.KindFileChange:
			for _, change := range e.Changes {
				fmt.Println("changed", change.Path)
			}
		}
		return nil // an error ends the run
	}})
	if err != nil {
		log.Fatal(err)
	}
}

func ExampleRunner_Detect() {
	var r runner.Runner
	found, err := r.Detect(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range found {
		fmt.Println(d.Runtime.ID, d.Available(), d.Path)
	}
}
