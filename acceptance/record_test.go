//go:build acceptance

package acceptance

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/runs"
)

// recordedRun returns the only recorded run and its events.
func (w *fixture) recordedRun() (runs.Run, []runs.Event) {
	w.t.Helper()
	store := runs.Records{Root: filepath.Join(w.home, ".local/state/bus-agent/runs")}
	list, problems, err := store.List(w.t.Context(), runs.Filter{})
	if err != nil || len(problems) > 0 || len(list) != 1 {
		w.t.Fatalf("%d runs, %v, %v", len(list), problems, err)
	}
	f, err := os.Open(filepath.Join(list[0].Dir, "events.ndjson"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	var entries []runs.Event
	if err := runs.ReadEvents(f, func(e *runs.Event) error {
		entries = append(entries, runs.Event{Time: e.Time, Event: *e.Event.Clone()})
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	return list[0], entries
}

// The record has the prompt, the tool calls, the answer and the usage, with secrets
// masked.
func TestRecord(t *testing.T) {
	t.Parallel()
	const shown = "the answer is 42, and *** opens it"
	for name, c := range map[string]struct {
		setup   setupFunc
		tool    modeltest.ToolCall
		result  string // in the events of the CLI
		version string
	}{
		"codex":  {newCodex, execCommand(map[string]any{"cmd": "cat fact.txt"}), shown, "codex 0."},
		"claude": {newClaude, modeltest.ToolCall{Name: "Read", Arguments: `{"file_path":"{repo}/fact.txt"}`}, shown, "claude 2."},
		"gemini": {newGemini, modeltest.ToolCall{Name: "read_file", Arguments: `{"file_path":"fact.txt"}`}, "", "gemini 0."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w *fixture
			script := sync.OnceValue(func() modeltest.Script {
				call := c.tool
				call.Arguments = strings.ReplaceAll(call.Arguments, "{repo}", w.repo)
				return modeltest.Replies(modeltest.Reply{call}, modeltest.Reply{modeltest.Text{"the key is sk-acceptance"}, turnUsage})
			})
			w = c.setup(t, func(r *modeltest.Request) modeltest.Reply { return script()(r) }, map[string]string{
				"fact.txt": "the answer is 42, and sk-acceptance opens it\n",
			})
			w.keptInHome = append(w.keptInHome, ".local")
			r, o := w.run("what does fact.txt say of sk-acceptance?", "--record=required", "--project", "p")
			if o.code != 0 {
				t.Fatal(o)
			}
			run, entries := w.recordedRun()
			if run.Status != runs.StatusCompleted || run.RunID != r.RunID || run.Agent != name || run.ProjectID != "p" || run.SessionID != r.SessionID ||
				run.SessionID == "" || run.ToolCalls != 1 || run.Usage == nil || run.Usage.Output == 0 {
				t.Errorf("recorded %+v", run.Info)
			}
			// The version may be missing if the CLI takes long to print it.
			if !strings.HasPrefix(run.AgentVersion, c.version) && (run.AgentVersion != "" || name != "gemini") {
				t.Errorf("the recorded version is %q", run.AgentVersion)
			}
			kinds := map[agent.Kind]int{}
			for _, e := range entries {
				kinds[e.Kind]++
				if e.Kind == agent.KindToolResult && !strings.Contains(e.Tool.Output.String(), c.result) {
					t.Errorf("tool result %q", e.Tool.Output)
				}
			}
			if kinds[runs.KindMessage] != 1 || kinds[agent.KindToolCall] != 1 || kinds[agent.KindToolResult] != 1 || kinds[agent.KindResult] != 1 {
				t.Errorf("events %v", kinds)
			}
			for file, want := range map[string]string{"prompt.md": "what does fact.txt say of ***?", "output.md": "the key is ***" + w.answerSuffix} {
				if text, err := os.ReadFile(filepath.Join(run.Dir, file)); err != nil || string(text) != want {
					t.Errorf("%s is %q, %v", file, text, err)
				}
			}
			w.checkNotInFiles(filepath.Join(w.home, ".local"), "sk-acceptance")
		})
	}
}

// checkNotInFiles fails the test when a file below dir holds text.
func (w *fixture) checkNotInFiles(dir, text string) {
	w.t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), text) {
			w.t.Errorf("%s contains %s", path, text)
		}
		return err
	})
	if err != nil || files == 0 {
		w.t.Errorf("%d files in %s, %v", files, dir, err)
	}
}
