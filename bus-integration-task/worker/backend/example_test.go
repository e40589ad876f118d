package backend_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/busdk/bus-agent/runs"

	"github.com/busdk/bus-integration-task/worker/backend"
)

func ExampleSession() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	b, err := newSession(filepath.Join(dir, "bin"), "HOME="+dir) // with a stub as the agent
	if err != nil {
		panic(err)
	}
	b.Runner.Recorder = &runs.Records{Root: filepath.Join(dir, "runs")}

	r, err := b.Start(context.Background(), backend.Attempt{
		Workdir: dir,
		Prompt:  "Tell me what to leave out.\nstub: guide",
		Labels:  backend.RecordLabels("bus-dev", "busdk#81.1", ""),
	}, backend.Listener{
		Notice:  func(text string) { fmt.Println(text) },
		Message: func(string) {}, // to be published; Outcome.Text has the final answer
	})
	if err != nil {
		panic(err)
	}
	defer r.Stop(context.Background(), "the program ends")

	delivery, err := r.Say(context.Background(), "the slow tests")
	if err != nil {
		panic(err)
	}
	<-r.Done()
	o := r.Stop(context.Background(), "done")
	fmt.Printf("%s, %s: %q, recorded: %t\n", delivery, o.Result, o.Text, o.RunID != "")
	// Output:
	// starting Codex app-server task backend
	// Codex app-server turn started
	// live guidance delivered to Codex app-server session
	// steered, completed: "guidance: the slow tests", recorded: true
}
