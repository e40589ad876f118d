package runs_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/runs"
)

// A run is recorded, and its record read back.
func ExampleRecords() {
	ctx := context.Background()
	root, err := runs.DefaultRoot(os.Environ())
	if err != nil {
		log.Fatal(err)
	}
	records := &runs.Records{Root: root}
	r := runner.Runner{Recorder: records}
	result, runErr := r.Run(ctx, agent.Request{Runtime: "codex", Prompt: "Fix the failing test."}, agent.Output{})
	if result.RunID == "" {
		log.Fatal(runErr) // nothing was started
	}

	run, err := records.Find(ctx, result.RunID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Status, run.Duration(), run.Usage)

	file, err := run.Open(runs.FileEvents)
	if err != nil {
		log.Fatal(err)
	}
	defer file.Close()
	err = runs.ReadEvents(file, func(e *runs.Event) error {
		fmt.Println(e.Time, e.Kind, e.Text)
		return nil
	})
	if err != nil && !errors.Is(err, runs.ErrDamaged) {
		log.Fatal(err)
	}
}
