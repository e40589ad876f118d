package command_test

import (
	"context"
	"fmt"
	"os"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/command"

	_ "github.com/busdk/bus-agent/backends/codex"
)

// The main function of a build that has one runtime.
func ExampleMain() {
	os.Exit(command.Main("1.2.3"))
}

// durations prints how long each run took.
type durations struct{}

func (durations) Record(_ context.Context, run agent.Recordable) (agent.Recording, error) {
	return agent.Recording{End: func(_ context.Context, result agent.Result, err error) error {
		fmt.Fprintln(os.Stderr, run.Start.Runtime, result.Duration, agent.KindOf(err))
		return nil
	}}, nil
}

// A build that reports each run.
func ExampleWithRecorder() {
	os.Exit(command.Main("1.2.3", command.WithRecorder(durations{})))
}
