//go:build acceptance

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

func answer(text string) modeltest.Reply { return modeltest.Reply{modeltest.Text{text}} }

// lastPrompt returns the last user message of a request.
func lastPrompt(r *modeltest.Request) string {
	texts := r.Texts("user")
	if len(texts) == 0 {
		return ""
	}
	return texts[len(texts)-1]
}

// The markers in the instruction files, outermost first.
const (
	rootMark = "MARKER-OF-THE-ROOT"
	midMark  = "MARKER-OF-THE-MIDDLE"
	deepMark = "MARKER-OF-THE-DEPTH"
	leafMark = "MARKER-OF-ANOTHER-FOLDER"
)

func layered() map[string]string {
	return map[string]string{
		"AGENTS.md":            "Root rules. " + rootMark + "\n",
		"services/AGENTS.md":   "Service rules. " + midMark + "\n",
		"services/a/AGENTS.md": "Rules of a. " + deepMark + "\n",
		"services/b/AGENTS.md": "Rules of b. " + leafMark + "\n",
		"services/a/main.go":   "package main\n",
	}
}

// checkMarks fails the test unless the request has each of marks once and in order, and
// no others.
func checkMarks(t *testing.T, r *modeltest.Request, marks ...string) {
	t.Helper()
	whole := strings.Join(r.Texts(), "\n")
	last := -1
	for _, mark := range []string{rootMark, midMark, deepMark, leafMark} {
		want := 0
		if slices.Contains(marks, mark) {
			want = 1
		}
		if n := r.Count(mark); n != want {
			t.Errorf("%s occurs %d times, want %d", mark, n, want)
		}
		if want == 0 {
			continue
		}
		at := strings.Index(whole, mark)
		if at < last {
			t.Errorf("%s precedes an outer one", mark)
		}
		last = at
	}
}

// Layouts of which bus-agent verify has none.
func TestCodexGetsEachAgentsMDOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		workdir string
		arrange func(w *fixture)
		want    []string
	}{
		"without a repository": {"services/a", (*fixture).removeGit, []string{deepMark}},
		"below a false repository": {"services/a", func(w *fixture) {
			// An empty .git is a root for Codex, but not a repository.
			w.removeGit()
			writeFiles(w.t, filepath.Dir(w.repo), map[string]string{"AGENTS.md": leafMark + "\n"})
			if err := os.Mkdir(filepath.Join(filepath.Dir(w.repo), ".git"), 0o755); err != nil {
				w.t.Fatal(err)
			}
		}, []string{deepMark}},
		"a custom .codex": {"services", func(w *fixture) { writeFiles(w.t, w.repo, map[string]string{".codex/notes.txt": "mine"}) }, []string{rootMark, midMark}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCodex(t, modeltest.Replies(answer("ok")), layered())
			workdir := filepath.Join(w.repo, tt.workdir)
			if tt.arrange != nil {
				tt.arrange(w)
			}
			r, o := w.run("hello", "--workdir", workdir)
			w.wantAnswer("ok", r, o)
			request := w.wantRequests(1)[0]
			checkMarks(t, request, tt.want...)
			if !slices.ContainsFunc(request.Texts("user"), func(s string) bool { return strings.Contains(s, "<cwd>"+workdir+"</cwd>") }) {
				t.Errorf("the workdir is not %s", workdir)
			}
			if len(r.Warnings) != 0 {
				t.Errorf("warnings: %q", r.Warnings)
			}
		})
	}
}

// Without bus-agent, Codex stops at 32 KiB, beginning with the root's file.
func TestCodexGetsWholeLongAgentsMD(t *testing.T) {
	t.Parallel()
	testLongInstructions(t, newCodex)
}

func TestCodexGetsModelEffortAndVerbosity(t *testing.T) {
	t.Parallel()
	w := newCodex(t, modeltest.Replies(answer("ok"), answer("ok")), nil)
	r, o := w.run("hello", "--model-reasoning-effort", "high", "--model-verbosity", "medium")
	w.wantAnswer("ok", r, o)
	if r.Model != "gpt-5.5" || r.Runtime != "codex" {
		t.Errorf("reported %s, %s", r.Runtime, r.Model)
	}
	if first, _, _ := strings.Cut(o.stderr, "\n"); !strings.Contains(first, "codex") || !strings.Contains(first, "gpt-5.5") {
		t.Errorf("the first line names not runtime and model: %q", first)
	}
	w.env = append(w.env, "BUS_AGENT_MODEL=gpt-5.5", "BUS_AGENT_MODEL_REASONING_EFFORT=low", "BUS_AGENT_MODEL_VERBOSITY=high")
	r, o = w.run("hello", "--agent", "codex")
	w.wantAnswer("ok", r, o)
	requests := w.wantRequests(2)
	for i, want := range []string{"gpt-5.5 high medium", "gpt-5.5 low high"} {
		if got := requests[i].Model() + " " + requests[i].Effort() + " " + requests[i].Verbosity(); got != want {
			t.Errorf("request %d has model %q, want %q", i, got, want)
		}
	}
}

// By default Codex chooses a model, which is reported.
func TestCodexReportsChosenModel(t *testing.T) {
	t.Parallel()
	testChosenModel(t, newCodex)
}

func TestCodexLocalReachesTheLocalServer(t *testing.T) {
	t.Parallel()
	w := newCodex(t, modeltest.Replies(answer("from here")), layered())
	w.env = append(w.env, "CODEX_OSS_BASE_URL="+w.model.OllamaURL(), "OPENAI_API_KEY=sk-outside", "CODEX_API_KEY=sk-outside")
	r, o := w.runWith("hello", nil, "--agent", "codex:local", "--model", "gpt-oss:20b", "--model-reasoning-effort", "low")
	w.wantAnswer("from here", r, o)
	if r.Runtime != "codex:local" {
		t.Errorf("runtime %q", r.Runtime)
	}
	request := w.wantRequests(1)[0]
	checkMarks(t, request, rootMark)
	if request.Model() != "gpt-oss:20b" || request.Effort() != "low" || lastPrompt(request) != "hello" {
		t.Errorf("model %s, effort %s, prompt %q", request.Model(), request.Effort(), lastPrompt(request))
	}
	var paths []string
	for _, request := range w.model.Requests() {
		paths = append(paths, request.Path)
		if request.Header.Get("Authorization") != "" {
			t.Errorf("%s got a key", request.Path)
		}
	}
	if !slices.Contains(paths, "/api/tags") {
		t.Errorf("no sign of Ollama in %q", paths)
	}
}

func TestCodexToolCallEvents(t *testing.T) {
	t.Parallel()
	w := newCodex(t, modeltest.Replies(
		modeltest.Reply{
			modeltest.Thinking{"I have to ", "look."},
			modeltest.Text{"Looking."},
			modeltest.ToolCall{Name: "exec_command", Arguments: `{"cmd":"cat fact.txt; exit 3"}`},
			modeltest.Usage{Input: 100, Output: 10},
		},
		modeltest.Reply{modeltest.Text{"It is ", "blue."}, modeltest.Usage{Input: 200, Cached: 100, Output: 20, Reasoning: 5}},
	), map[string]string{"fact.txt": "the sky is blue\n"})
	o := w.exec("what colour?", append([]string{"run", "--agent", "codex", "--model", "gpt-5.5", "--output-format", "events", "--prompt", "-"}, w.codexArgs()...)...)
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
	if last := lastOfKind(list, agent.KindText); last.Text != "It is blue." {
		t.Errorf("final text %q", last.Text)
	}
}

// A session reports the diffs of file changes. A run cannot, because `codex exec` names
// only the files.
func TestCodexFileChangeEvents(t *testing.T) {
	t.Parallel()
	patch := func(change string) modeltest.Reply {
		return modeltest.Reply{modeltest.ToolCall{Name: "apply_patch", Arguments: "*** Begin Patch\n*** " + change + "\n*** End Patch\n"}}
	}
	script := func() modeltest.Script {
		return modeltest.Replies(patch("Add File: made\n+a\n+b"), patch("Update File: made\n@@\n a\n-b\n+c"), patch("Delete File: made"), answer("done"))
	}
	changes := func(w *fixture, list []agent.Event) (found []agent.FileChange) {
		for _, e := range list {
			for _, c := range e.Changes {
				c.Path = strings.TrimPrefix(c.Path, w.repo)
				found = append(found, c)
			}
		}
		return found
	}
	w := newCodex(t, script(), nil)
	o := w.exec("go", append([]string{"run", "--agent", "codex", "--model", "gpt-5.5", "--output-format", "events", "--prompt", "-"}, w.codexArgs()...)...)
	want := []agent.FileChange{{Path: "/made", Action: "add"}, {Path: "/made", Action: "update"}, {Path: "/made", Action: "delete"}}
	if diff := cmp.Diff(want, changes(w, events(t, o))); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}

	w = newCodex(t, script(), nil)
	d := w.startSession(session.Options{}, nil)
	d.sendWant("go", "done")
	want[0].Diff, want[1].Diff, want[2].Diff = "@@ -0,0 +1,2 @@\n+a\n+b\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "@@ -1,2 +0,0 @@\n-a\n-c\n"
	if diff := cmp.Diff(want, changes(w, d.eventLog())); diff != "" {
		t.Errorf("session (-want +got):\n%s", diff)
	}
	d.stop()
}

// Standard output has the final answer, standard error the conversation, and ndjson is
// the output of Codex.
func TestCodexOutputs(t *testing.T) {
	t.Parallel()
	script := modeltest.Replies(
		modeltest.Reply{modeltest.Text{"First words."}, modeltest.ToolCall{Name: "exec_command", Arguments: `{"cmd":"echo tool-output"}`}},
		answer("The answer."), answer("Raw."))
	w := newCodex(t, script, nil)
	o := w.exec("hello", append([]string{"run", "--agent", "codex", "--model", "gpt-5.5", "--prompt", "-"}, w.codexArgs()...)...)
	if o.code != 0 || o.stdout != "The answer.\n" {
		t.Errorf("text: %v", o)
	}
	for _, part := range []string{"First words.", "tool-output", "The answer."} {
		if !strings.Contains(o.stderr, part) {
			t.Errorf("standard error lacks %q: %v", part, o)
		}
	}
	if strings.Contains(o.stderr, "Untrusted project-local configuration") {
		t.Errorf("standard error has a warning that bus-agent caused: %v", o)
	}
	o = w.exec("hello", append([]string{"run", "--agent", "codex", "--model", "gpt-5.5", "--output-format", "ndjson", "--prompt", "-"}, w.codexArgs()...)...)
	if o.code != 0 || !strings.HasPrefix(o.stdout, `{"type":"thread.started","thread_id":"`) || !strings.Contains(o.stdout, `"type":"agent_message","text":"Raw."`) {
		t.Errorf("ndjson: %v", o)
	}
}

// bus-agent verify tests read access.
func TestCodexAccessHolds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		access        string
		inside, above bool
	}{
		"write": {"write", true, false},
		"full":  {"full", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCodex(t, modeltest.Replies(
				modeltest.Reply{modeltest.ToolCall{Name: "exec_command", Arguments: `{"cmd":"echo x > sub/made-inside; echo x > ../made-above; echo x > .git/made; echo $?"}`}},
				answer("done")), map[string]string{".gitignore": "made-*\n", "sub/keep": ""})
			r, o := w.run("make files", "--access", tt.access)
			w.wantAnswer("done", r, o)
			w.wantRequests(2)
			for path, want := range map[string]bool{
				filepath.Join(w.repo, "sub", "made-inside"): tt.inside,
				filepath.Join(w.repo, "..", "made-above"):   tt.above,
				filepath.Join(w.repo, ".git", "made"):       tt.above,
			} {
				if _, err := os.Stat(path); (err == nil) != want {
					t.Errorf("%s written: %v, want %v", path, err == nil, want)
				}
			}
		})
	}
}

func TestCodexWritesToAddedDirs(t *testing.T) {
	t.Parallel()
	extra := t.TempDir()
	w := newCodex(t, modeltest.Replies(
		modeltest.Reply{modeltest.ToolCall{Name: "exec_command", Arguments: fmt.Sprintf(`{"cmd":"echo x > %s/made"}`, extra)}},
		answer("done")), nil)
	r, o := w.run("make a file", "--add-dir", extra)
	w.wantAnswer("done", r, o)
	if _, err := os.Stat(filepath.Join(extra, "made")); err != nil {
		t.Error(err)
	}
}
