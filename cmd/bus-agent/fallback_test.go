package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The record of a run that another one has gone before links it, in the same task.
func TestFallbackIsRecorded(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "claude", `out {"type":"system","subtype":"init","session_id":"s","model":"opus"}
out {"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You have no quota left","session_id":"s"}
exit 1
`)
	if err := link(s.path("bin"), "codex"); err != nil {
		t.Fatal(err)
	}
	play := `out {"type":"thread.started","thread_id":"t"}
out {"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Hello."}}
out {"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}
`
	if err := os.WriteFile(s.path("bin/codex.play"), []byte(play), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := s.command("run", "--agent", "claude", "--fallback", "codex", "--text", "x", "--format", "json", "--record", "--runs-root", s.path("runs"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		RunID    string `json:"run_id"`
		Attempts []struct {
			RunID string `json:"run_id"`
		}
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Attempts) != 1 || report.Attempts[0].RunID == "" || report.RunID == "" {
		t.Fatalf("%v\n%s", err, out)
	}
	infos, err := filepath.Glob(s.path("runs/*/*/runs/*/run-info.yaml"))
	if err != nil || len(infos) != 2 {
		t.Fatalf("records %q, %v", infos, err)
	}
	for _, name := range infos {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		last := filepath.Base(filepath.Dir(name)) == report.RunID
		if links := strings.Contains(string(text), "previous_run_id: "+report.Attempts[0].RunID+"\n"); links != last {
			t.Errorf("%s links the run before: %v\n%s", name, links, text)
		}
	}
	if tasks, err := filepath.Glob(s.path("runs/*/*/runs")); err != nil || len(tasks) != 1 {
		t.Errorf("tasks %q, %v", tasks, err)
	}
}
