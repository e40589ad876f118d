//go:build acceptance

package acceptance

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
)

// By default Gemini CLI lets a small model choose. The report has the chosen one.
func TestGeminiReportsChosenModel(t *testing.T) {
	t.Parallel()
	testChosenModel(t, newGemini)
}

func shell(command string) modeltest.ToolCall {
	return modeltest.ToolCall{Name: "run_shell_command", Arguments: `{"command":"` + command + `","description":"try"}`}
}

// Gemini CLI reports neither thinking nor the exit code of a command.
func TestGeminiToolCallEvents(t *testing.T) {
	t.Parallel()
	w := newGemini(t, modeltest.Replies(
		modeltest.Reply{
			modeltest.Thinking{"**Look** I have to look."},
			modeltest.Text{"Looking."},
			shell("cat fact.txt; exit 3"),
			modeltest.Usage{Input: 100, Output: 10},
		},
		modeltest.Reply{modeltest.Text{"It is ", "blue."}, modeltest.Usage{Input: 200, Cached: 100, Output: 20}},
	), map[string]string{"fact.txt": "the sky is blue\n"})
	o := w.exec("what colour?", "run", "--agent", "gemini", "--model", w.modelID, "--access", "full", "--output-format", "events", "--prompt", "-")
	list := toolCallEvents(w, o)
	want := []agent.Kind{agent.KindSessionStarted, agent.KindText, agent.KindToolCall, agent.KindToolResult, agent.KindText, agent.KindResult}
	if diff := cmp.Diff(want, kinds(list)); diff != "" {
		t.Errorf("events (-want +got):\n%s\n%v", diff, o)
	}
	if usage := lastOfKind(list, agent.KindUsage).Usage; usage == nil || usage.Input != 300 || usage.Output != 30 || usage.Cached != 100 {
		t.Errorf("usage %+v", usage)
	}
}

// Standard output has the final answer, standard error the conversation without other
// messages of the CLI.
func TestGeminiOutputs(t *testing.T) {
	t.Parallel()
	w := newGemini(t, modeltest.Replies(
		modeltest.Reply{modeltest.Text{"First words."}, shell("echo tool-output")},
		answer("The answer."), answer("Raw.")), nil)
	o := w.exec("hello", "run", "--agent", "gemini", "--model", w.modelID, "--access", "full", "--prompt", "-")
	if o.code != 0 || o.stdout != "The answer.\n" {
		t.Errorf("text: %v", o)
	}
	for _, part := range []string{"First words.", "tool-output", "The answer."} {
		if !strings.Contains(o.stderr, part) {
			t.Errorf("standard error lacks %q: %v", part, o)
		}
	}
	for _, part := range []string{"256-color", "Ripgrep", "YOLO"} {
		if strings.Contains(o.stderr, part) {
			t.Errorf("standard error has the chatter %q: %v", part, o)
		}
	}
	o = w.exec("hello", "run", "--agent", "gemini", "--model", w.modelID, "--output-format", "ndjson", "--prompt", "-")
	if o.code != 0 || !strings.HasPrefix(o.stdout, `{"type":"init"`) || !strings.Contains(o.stdout, `"content":"Raw."`) {
		t.Errorf("ndjson: %v", o)
	}
}

func TestGeminiWritesToAddedDirs(t *testing.T) {
	t.Parallel()
	extra := newFiredDir(t)
	w := newGemini(t, modeltest.Replies(
		modeltest.Reply{modeltest.ToolCall{Name: "write_file", Arguments: `{"file_path":"` + extra + `/made","content":"x"}`}},
		answer("done")), nil)
	r, o := w.run("make a file", "--add-dir", extra)
	w.wantAnswer("done", r, o)
	if got := firedNames(t, extra); !slices.Equal(got, []string{"made"}) {
		t.Errorf("created %q; the tool results are %q", got, w.wantRequests(2)[1].ToolResults())
	}
}

// Failures of which bus-agent verify has none, and the text before a cut.
func TestGeminiFailures(t *testing.T) {
	t.Parallel()
	status := func(code int, message string) modeltest.Reply {
		return modeltest.Reply{modeltest.HTTPError{Status: code, Message: message}}
	}
	testFailures(t, newGemini, map[string]failure{
		"404":               {reply: status(http.StatusNotFound, "no such model"), kind: "agent", says: "no such model", asked: 1},
		"cut in the middle": {reply: modeltest.Reply{modeltest.Text{"half an ans"}, modeltest.Cut{}}, kind: "agent", says: "terminated", asked: 10, text: "half an ans"},
		"empty answer":      {reply: nil, kind: "agent", says: "empty response", asked: 10},
	})
}

// A background process of a tool neither blocks the end of a run nor outlives it.
func TestGeminiLeavesNoBackgroundProcess(t *testing.T) {
	t.Parallel()
	w := newGemini(t, modeltest.Replies(
		modeltest.Reply{shell("nohup setsid sleep 300 > /dev/null 2>&1 & echo started")},
		answer("left running")), nil)
	r, o := w.run("hello", "--access", "full")
	w.wantAnswer("left running", r, o)
	w.wantRequests(2)
}
