//go:build acceptance

package acceptance

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
)

// By default Claude Code chooses a model, which is reported.
func TestClaudeReportsChosenModel(t *testing.T) {
	t.Parallel()
	testChosenModel(t, newClaude)
}

func bash(command string) modeltest.ToolCall {
	return modeltest.ToolCall{Name: "Bash", Arguments: `{"command":"` + command + `","description":"try"}`}
}

func TestClaudeToolCallEvents(t *testing.T) {
	t.Parallel()
	w := newClaude(t, modeltest.Replies(
		modeltest.Reply{
			modeltest.Thinking{"I have to ", "look."},
			modeltest.Text{"Looking."},
			bash("cat fact.txt; exit 3"),
			modeltest.Usage{Input: 100, Output: 10},
		},
		modeltest.Reply{modeltest.Text{"It is ", "blue."}, modeltest.Usage{Input: 200, Cached: 100, Output: 20, Reasoning: 5}},
	), map[string]string{"fact.txt": "the sky is blue\n"})
	o := w.exec("what colour?", "run", "--agent", "claude", "--access", "full", "--output-format", "events", "--prompt", "-")
	list := toolCallEvents(w, o)
	want := []agent.Kind{agent.KindSessionStarted, agent.KindThinking, agent.KindText, agent.KindToolCall, agent.KindToolResult, agent.KindText, agent.KindResult}
	if diff := cmp.Diff(want, kinds(list)); diff != "" {
		t.Errorf("events (-want +got):\n%s\n%v", diff, o)
	}
	if got := lastOfKind(list, agent.KindThinking).Text; got != "I have to look." {
		t.Errorf("thinking %q", got)
	}
	if result := lastOfKind(list, agent.KindToolResult); result.Tool.ExitCode == nil || *result.Tool.ExitCode != 3 || !result.Failed {
		t.Errorf("tool result %+v, failed %v", result.Tool, result.Failed)
	}
	if last := lastOfKind(list, agent.KindResult); last.Text != "It is blue." {
		t.Errorf("final text %q", last.Text)
	}
	if usage := lastOfKind(list, agent.KindUsage).Usage; usage == nil || usage.Input != 300 || usage.Output != 30 || usage.CostUSD == nil {
		t.Errorf("usage %+v", usage)
	}
}

// A changed file is reported with its hunks, a new one with all its lines.
func TestClaudeFileChangesHaveDiffs(t *testing.T) {
	t.Parallel()
	var w *fixture
	call := func(tool, arguments string) modeltest.Reply {
		return modeltest.Reply{modeltest.ToolCall{Name: tool, Arguments: arguments}}
	}
	path := func(name string) string { return `{"file_path":"` + filepath.Join(w.repo, name) + `"` }
	w = newClaude(t, func(r *modeltest.Request) modeltest.Reply {
		switch len(r.ToolResults()) {
		case 0:
			return call("Read", path("fact.txt")+`}`)
		case 1:
			return call("Edit", path("fact.txt")+`,"old_string":"blue","new_string":"grey"}`)
		case 2:
			return call("Write", path("new.txt")+`,"content":"one\ntwo"}`)
		}
		return answer("done")
	}, map[string]string{"fact.txt": "the sky\nis blue\ntoday\n"})
	w.mayAdd = []string{"fact.txt", "new.txt"}
	o := w.exec("change it", "run", "--agent", "claude", "--output-format", "events", "--prompt", "-")
	var diffs []string
	for _, e := range events(t, o) {
		for _, c := range e.Changes {
			diffs = append(diffs, c.Action+"\n"+c.Diff)
		}
	}
	want := []string{
		"update\n@@ -1,3 +1,3 @@\n the sky\n-is blue\n+is grey\n today\n",
		"add\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n",
	}
	if diff := cmp.Diff(want, diffs); diff != "" {
		t.Errorf("diffs (-want +got):\n%s\n%v", diff, o)
	}
}

// Standard output has the final answer, standard error the conversation.
func TestClaudeOutputs(t *testing.T) {
	t.Parallel()
	w := newClaude(t, modeltest.Replies(
		modeltest.Reply{modeltest.Text{"First words."}, bash("echo tool-output")},
		answer("The answer."), answer("Raw.")), nil)
	o := w.exec("hello", "run", "--agent", "claude", "--prompt", "-")
	if o.code != 0 || o.stdout != "The answer.\n" {
		t.Errorf("text: %v", o)
	}
	for _, part := range []string{"First words.", "tool-output", "The answer."} {
		if !strings.Contains(o.stderr, part) {
			t.Errorf("standard error lacks %q: %v", part, o)
		}
	}
	o = w.exec("hello", "run", "--agent", "claude", "--output-format", "ndjson", "--prompt", "-")
	if o.code != 0 || !strings.Contains(o.stdout, `"subtype":"init"`) || !strings.Contains(o.stdout, `"text":"Raw."`) {
		t.Errorf("ndjson: %v", o)
	}
}

// Failures of which bus-agent verify has none.
func TestClaudeFailures(t *testing.T) {
	t.Parallel()
	status := func(code int, message string) modeltest.Reply {
		return modeltest.Reply{modeltest.HTTPError{Status: code, Message: message}}
	}
	testFailures(t, newClaude, map[string]failure{
		"404":                  {reply: status(http.StatusNotFound, "no such model"), kind: "agent", says: "model", asked: 2},
		"529":                  {reply: status(529, "too much"), kind: "agent", says: "529", asked: 4},
		"failed in the stream": {reply: modeltest.Reply{modeltest.Text{"half"}, modeltest.Fail{Code: "overloaded_error", Message: "later"}}, kind: "agent", says: "mid-response", asked: 10, text: "half"},
	})
}

func TestClaudeRecoversFromACut(t *testing.T) {
	t.Parallel()
	testRecovery(t, newClaude)
}

// A background process of a tool neither blocks the end of a run nor outlives it.
func TestClaudeLeavesNoBackgroundProcess(t *testing.T) {
	t.Parallel()
	w := newClaude(t, modeltest.Replies(
		modeltest.Reply{bash("nohup setsid sleep 300 > /dev/null 2>&1 & echo started")},
		answer("left running")), nil)
	r, o := w.run("hello", "--access", "full")
	w.wantAnswer("left running", r, o)
	w.wantRequests(2)
}
