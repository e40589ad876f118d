package runs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// start is when the first run of a test began.
var start = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// exampleInfo returns completed run n of a project with one run a minute.
func exampleInfo(n int) Info {
	at := start.Add(time.Duration(n) * time.Minute)
	return Info{
		Version: 1, RunID: fmt.Sprintf("%s0000-4711-%d", at.Format("20060102-150405"), n+1),
		ProjectID: "demo", TaskID: fmt.Sprintf("task-20261121-100000-example-%04d", n), Agent: "one", ProcessOwnership: "managed",
		PID: 4712 + n, PGID: 4712 + n, StartTime: at, EndTime: at.Add(30*time.Second + 123456789), Status: StatusCompleted,
		CWD: "/srv/demo", CommandLine: "one exec --json -", AgentVersion: "one 1.2.3",
		Owner: "b0a1:4026531836:4711:1234", Model: "m-1", SessionID: "0197a3d2-7c1e-7f00-8000-000000000000", Access: "write",
		Usage: &Usage{Input: 12345, Cached: 10000, Output: 678}, ToolCalls: 4,
	}
}

// put writes the record of a run and returns its folder.
func put(t testing.TB, root string, info Info) string {
	t.Helper()
	dir := filepath.Join(root, info.ProjectID, info.TaskID, runsName, info.RunID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	info.PromptPath, info.OutputPath = filepath.Join(dir, promptName), filepath.Join(dir, outputName)
	info.StdoutPath, info.StderrPath = filepath.Join(dir, stdoutName), filepath.Join(dir, stderrName)
	info.EventsPath = filepath.Join(dir, eventsName)
	text, err := marshalInfo(&info)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, infoName), string(text))
	return dir
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
