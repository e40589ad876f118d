//go:build acceptance

package acceptance

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/modeltest"
)

// A setupFunc returns a fixture for one CLI.
type setupFunc func(t *testing.T, script modeltest.Script, files map[string]string) *fixture

// prompts returns prompts that a CLI might not treat as plain text.
func prompts() map[string]string {
	return map[string]string{
		"three million bytes": strings.Repeat("0123456789", 299_998) + "0123456789abcdef€\n",
		"leading dash":        "--help me with --dangerously-skip-permissions",
		"a dash alone":        "-",
		"shell text":          "$(touch pwned) `touch pwned`; touch pwned && \"quoted\" 'single' \\ !! ~ *",
		"templates":           "look at {{NAME}} and {% x %} and ${HOME}",
		"blank and line ends": "  two blanks before\n\ttab\nand a line end",
		"prefix of a word":    "résumé naïve 日本語",
		"leading slash":       "/compact the prose",
		"leading exclamation": "!touch pwned",
		"leading hash":        "# remember this",
		"an @ without a file": "ask @missing-here and a@b.example about it",
	}
}

// testPrompts checks that each prompt reaches the model unchanged, except that a line
// break may precede a slash.
func testPrompts(t *testing.T, setup setupFunc, prompts map[string]string) {
	for name, prompt := range prompts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, modeltest.Replies(answer("got it")), nil)
			r, o := w.run(prompt)
			w.wantAnswer("got it", r, o)
			got := strings.TrimSuffix(lastPrompt(w.wantRequests(1)[0]), w.promptSuffix)
			if strings.HasPrefix(prompt, "/") {
				got = strings.TrimPrefix(got, "\n")
			}
			if got != prompt {
				t.Errorf("the model got %d bytes of %d: %s", len(got), len(prompt), cmp.Diff(clip(prompt), clip(got)))
			}
			if _, err := os.Stat(filepath.Join(w.repo, "pwned")); err == nil {
				t.Error("the prompt was run")
			}
		})
	}
}

// Prompts of which bus-agent verify has none.
func TestSpecialPrompts(t *testing.T) {
	t.Parallel()
	special := maps.Clone(prompts())
	maps.DeleteFunc(special, func(name, _ string) bool {
		return name != "a dash alone" && name != "templates" && name != "leading hash"
	})
	for name, setup := range map[string]setupFunc{"codex": newCodex, "claude": newClaude, "gemini": newGemini} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testPrompts(t, setup, special)
		})
	}
}

// ownMark is the marker in the CLI's own instruction files.
const ownMark = "MARKER-OF-THE-OWN-FILE"

// A layout is a repository with instruction files, and the markers that must reach the
// model.
type layout struct {
	workdir string
	files   map[string]string // in addition to those of layered
	home    map[string]string
	links   map[string]string // name and target
	arrange func(w *fixture)
	want    []string
	own     int // the number of times ownMark must occur
}

// layouts returns the layouts for a CLI whose instruction files are called own and
// whose folder in the home is dir.
func layouts(own, dir string) map[string]layout {
	return map[string]layout{
		"at the root":          {workdir: ".", want: []string{rootMark}},
		"one level down":       {workdir: "services", want: []string{rootMark, midMark}},
		"two levels down":      {workdir: "services/a", want: []string{rootMark, midMark, deepMark}},
		"without a repository": {workdir: "services/a", arrange: (*fixture).removeGit, want: []string{deepMark}},
		"below a false repository": {workdir: "services/a", arrange: func(w *fixture) {
			w.removeGit()
			writeFiles(w.t, filepath.Dir(w.repo), map[string]string{"AGENTS.md": leafMark + "\n"})
			if err := os.Mkdir(filepath.Join(filepath.Dir(w.repo), ".git"), 0o755); err != nil {
				w.t.Fatal(err)
			}
		}, want: []string{deepMark}},
		"own file":               {workdir: ".", files: map[string]string{own: ownMark + "\n"}, want: []string{rootMark}, own: 1},
		"own file, empty":        {workdir: ".", files: map[string]string{own: ""}, want: []string{rootMark}},
		"own file that imports":  {workdir: ".", files: map[string]string{own: "@AGENTS.md\n\n" + ownMark + "\n"}, want: []string{rootMark}, own: 1},
		"own file that links":    {workdir: ".", links: map[string]string{own: "AGENTS.md"}, want: []string{rootMark}},
		"own file that repeats":  {workdir: ".", files: map[string]string{own: layered()["AGENTS.md"]}, want: []string{rootMark}},
		"own file in a parent":   {workdir: "services/a", files: map[string]string{own: ownMark + "\n"}, want: []string{rootMark, midMark, deepMark}, own: 1},
		"a parent that imports":  {workdir: "services/a", files: map[string]string{own: "@AGENTS.md\n" + ownMark + "\n"}, want: []string{rootMark, midMark, deepMark}, own: 1},
		"imports everywhere":     {workdir: "services", files: map[string]string{own: "@AGENTS.md\n", "services/" + own: "@AGENTS.md\n"}, want: []string{rootMark, midMark}},
		"own file in the depth":  {workdir: "services", files: map[string]string{"services/" + own: ownMark + "\n"}, want: []string{rootMark, midMark}, own: 1},
		"own file of the user":   {workdir: ".", home: map[string]string{dir + "/" + own: ownMark + "\n"}, want: []string{rootMark}, own: 1},
		"own file and no others": {workdir: "services/b", files: map[string]string{"services/b/AGENTS.md": "", "services/AGENTS.md": "", "AGENTS.md": "", own: ownMark + "\n"}, own: 1},
	}
}

// furtherLayouts returns the layouts of which bus-agent verify has none.
func furtherLayouts(own, dir string) map[string]layout {
	all := layouts(own, dir)
	for _, name := range []string{"at the root", "one level down", "two levels down", "own file that links", "imports everywhere"} {
		delete(all, name)
	}
	return all
}

// testAgentsMD checks that each AGENTS.md from the root to the workdir reaches the model
// once and in order, and that the CLI's own file does too.
func testAgentsMD(t *testing.T, setup setupFunc, layouts map[string]layout, flags ...string) {
	for name, l := range layouts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := layered()
			for path, text := range l.files {
				files[path] = text
			}
			w := setup(t, modeltest.Replies(answer("ok")), files)
			for link, target := range l.links {
				if err := os.Symlink(target, filepath.Join(w.repo, link)); err != nil {
					t.Fatal(err)
				}
			}
			if l.arrange != nil {
				l.arrange(w)
			}
			writeFiles(t, w.home, l.home)
			workdir := filepath.Join(w.repo, l.workdir)
			r, o := w.run("hello", append([]string{"--workdir", workdir}, flags...)...)
			w.wantAnswer("ok", r, o)
			request := w.wantRequests(1)[0]
			checkMarks(t, request, l.want...)
			if n := request.Count(ownMark); n != l.own {
				t.Errorf("the CLI's own file occurs %d times, want %d", n, l.own)
			}
			if request.Count(workdir) == 0 {
				t.Errorf("the workdir is not %s", workdir)
			}
			if len(r.Warnings) != 0 {
				t.Errorf("warnings: %q", r.Warnings)
			}
		})
	}
}

// testLongInstructions checks that 200 KiB of instructions reach the model, and that
// longer ones are truncated with a warning or are an error.
func testLongInstructions(t *testing.T, setup setupFunc) {
	files := layered()
	var long strings.Builder
	for i := 0; long.Len() < 200<<10; i++ {
		fmt.Fprintf(&long, "rule %d of many\n", i)
	}
	files["AGENTS.md"] += long.String()
	w := setup(t, modeltest.Replies(answer("ok")), files)
	r, o := w.run("hello", "--workdir", filepath.Join(w.repo, "services/a"), "--require-agents-md")
	w.wantAnswer("ok", r, o)
	request := w.wantRequests(1)[0]
	checkMarks(t, request, rootMark, midMark, deepMark)
	if request.Count(long.String()) != 1 {
		t.Error("the long file is incomplete")
	}

	files["AGENTS.md"] += strings.Repeat("a rule that fills a line\n", 100<<10/25)
	w = setup(t, modeltest.Replies(answer("ok")), files)
	r, o = w.run("hello", "--workdir", filepath.Join(w.repo, "services"))
	w.wantAnswer("ok", r, o)
	if len(r.Warnings) == 0 {
		t.Errorf("no warning that the instructions were truncated: %v", o)
	}
	request = w.wantRequests(1)[0]
	if n := request.Count(rootMark); n > 1 {
		t.Errorf("the root's instructions occur %d times", n)
	}
	if n := request.Count(midMark); n != 1 {
		t.Errorf("the closest instructions occur %d times", n)
	}

	w = setup(t, modeltest.Replies(), files)
	if o := w.exec("hello", append([]string{"run", "--agent", w.agent, "--require-agents-md", "--prompt", "-"}, w.codexArgs()...)...); o.code == 0 || len(w.model.ModelRequests()) != 0 {
		t.Errorf("--require-agents-md accepts a truncated AGENTS.md: %v", o)
	}
}

// testChosenModel checks that the model the CLI chose by itself is reported.
func testChosenModel(t *testing.T, setup setupFunc) {
	w := setup(t, modeltest.Replies(modeltest.Reply{modeltest.Text{"ok"}, modeltest.Usage{Input: 10, Output: 5}}), nil)
	r, o := w.run("hello", "--agent", w.agent)
	w.wantAnswer("ok", r, o)
	if chosen := w.wantRequests(1)[0].Model(); chosen == "" || r.Model != chosen {
		t.Errorf("reported %q, requested %q", r.Model, chosen)
	}
}

// toolCallEvents returns the events of a run that has run "cat fact.txt", of which both
// the model and the events must have the call and its output.
func toolCallEvents(w *fixture, o outcome) []agent.Event {
	w.t.Helper()
	if o.code != 0 {
		w.t.Fatal(o)
	}
	results := w.wantRequests(2)[1].ToolResults()
	if len(results) != 1 || !strings.Contains(results[0].Output, "the sky is blue") {
		w.t.Fatalf("the model got the tool results %q", results)
	}
	list := events(w.t, o)
	call, result := lastOfKind(list, agent.KindToolCall), lastOfKind(list, agent.KindToolResult)
	if call.Tool == nil || result.Tool == nil {
		w.t.Fatalf("no tool in the events: %v", o)
	}
	if !strings.Contains(string(call.Tool.Input), "cat fact.txt") || call.Tool.ID == "" || call.Tool.ID != result.Tool.ID {
		w.t.Errorf("tool call %+v", call.Tool)
	}
	if !strings.Contains(result.Tool.Output.String(), "the sky is blue") {
		w.t.Errorf("tool result %+v", result.Tool)
	}
	return list
}

// events parses the events on standard output.
func events(t *testing.T, o outcome) []agent.Event {
	t.Helper()
	var list []agent.Event
	lines := bufio.NewScanner(strings.NewReader(o.stdout))
	for lines.Scan() {
		var e agent.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%v in %s", err, lines.Text())
		}
		list = append(list, e)
	}
	return list
}

// kinds returns the kinds of events except heartbeats and usage, without repetitions.
func kinds(events []agent.Event) []agent.Kind {
	var list []agent.Kind
	for _, e := range events {
		if e.Kind != agent.KindHeartbeat && e.Kind != agent.KindUsage {
			list = append(list, e.Kind)
		}
	}
	return slices.Compact(list)
}

// lastOfKind returns the last event of a kind, or the zero value.
func lastOfKind(events []agent.Event, kind agent.Kind) agent.Event {
	var last agent.Event
	for _, e := range events {
		if e.Kind == kind {
			last = e
		}
	}
	return last
}

// A failure is a failure of the model and the result that a run must have.
type failure struct {
	reply modeltest.Reply
	args  []string
	kind  string
	says  string
	tail  string // the end of standard error
	asked int    // at most
	text  string // the incomplete answer
}

// testFailures checks the kind, error and number of requests of runs that fail.
func testFailures(t *testing.T, setup setupFunc, failures map[string]failure) {
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, modeltest.Always(f.reply), nil)
			r, o := w.run("hello", f.args...)
			for range 3 {
				if len(w.model.ModelRequests()) > 0 || !strings.HasSuffix(r.Kind, "timeout") {
					break
				}
				// The timeout expired before the first request, on a busy machine.
				f = f.slower(t)
				w = setup(t, modeltest.Always(f.reply), nil)
				r, o = w.run("hello", f.args...)
			}
			if o.code != 1 || r.Kind != f.kind || !strings.Contains(r.Error, f.says) {
				t.Errorf("kind %q, error %q; want %q, %q\n%v", r.Kind, r.Error, f.kind, f.says, o)
			}
			if !strings.HasSuffix(r.Stderr, f.tail) {
				t.Errorf("standard error ends with %q, want %q", r.Stderr, f.tail)
			}
			if n := len(w.model.ModelRequests()); n == 0 || n > f.asked {
				t.Errorf("the model got %d requests, want at most %d", n, f.asked)
			}
			if strings.Contains(o.stdout+o.stderr, "sk-acceptance") {
				t.Error("the key is in the output")
			}
			if r.Text != f.text {
				t.Errorf("the run has the answer %q, want %q", r.Text, f.text)
			}
			t.Logf("%s after %.1f s and %d requests: %s", r.Kind, o.took.Seconds(), len(w.model.ModelRequests()), r.Error)
		})
	}
}

// slower returns f with four times the time limit.
func (f failure) slower(t *testing.T) failure {
	limit, err := time.ParseDuration(f.args[1])
	if err != nil {
		t.Fatal(err)
	}
	f.args = []string{f.args[0], (4 * limit).String()}
	f.says = strings.ReplaceAll(f.says, limit.String(), (4 * limit).String())
	return f
}

// testUnknownSessions checks that resuming an unknown session fails: with code for a
// well-formed ID, and with a usage error for others.
func testUnknownSessions(t *testing.T, setup setupFunc, code int) {
	w := setup(t, modeltest.Replies(), nil)
	for id, code := range map[string]int{"01a1fbf8-2ce6-7001-b1d6-c4a1e4a822f0": code, "no-such-session": 2, "../../x": 2, "latest": 2, "a.jsonl": 2} {
		o := w.exec("hello", "run", "--agent", w.agent, "--resume", id, "--prompt", "-")
		if o.code != code || !strings.Contains(o.stderr, id) {
			t.Errorf("resume %s: %v", id, o)
		}
	}
	if n := len(w.model.ModelRequests()); n != 0 {
		t.Errorf("the model got %d requests", n)
	}
}

// testRecovery checks that a request is retried after its answer was cut off.
func testRecovery(t *testing.T, setup setupFunc) {
	w := setup(t, modeltest.Replies(modeltest.Reply{modeltest.Text{"half"}, modeltest.Cut{}}, answer("the whole answer")), nil)
	r, o := w.run("hello")
	w.wantAnswer("the whole answer", r, o)
	w.wantRequests(2)
}

// testInterrupt checks that Ctrl-C ends the agent and the command that call runs. The
// command creates the file "running" and does not end by itself.
func testInterrupt(t *testing.T, setup setupFunc, call modeltest.ToolCall) {
	w := setup(t, modeltest.Replies(modeltest.Reply{call}), map[string]string{".gitignore": "running\n"})
	ctx, cancel := context.WithTimeout(t.Context(), runLimit)
	defer cancel()
	before := w.snapshot()
	cmd, stdout, stderr := w.start(ctx, "hello", append([]string{
		"run", "--agent", w.agent, "--model", w.modelID, "--access", "full", "--format", "json", "--prompt", "-",
	}, w.codexArgs()...)...)
	w.awaitFile("running")
	interrupt(t, cmd)
	err := cmd.Wait()
	var r report
	if jsonErr := json.Unmarshal(stdout.Bytes(), &r); jsonErr != nil || r.Kind != "canceled" {
		t.Errorf("ended with %v, %v, kind %q\n%s\n%s", err, jsonErr, r.Kind, stdout, stderr)
	}
	if code := cmd.ProcessState.ExitCode(); code == 0 {
		t.Error("exit code 0")
	}
	w.checkNothingLeft(before)
}

// An accessCase is a series of tool calls, and the access under which it must create a
// file.
type accessCase struct {
	calls []modeltest.ToolCall // "REPO" in arguments is the repository
	makes string               // file to be created, relative to the repository
	args  []string
	words []string // access values to test; empty for all
	under []string // access values that permit it
}

func callsOf(calls ...modeltest.ToolCall) []modeltest.ToolCall { return calls }

// testAccess checks that each case creates its file only with the access that permits
// it, and that a denied tool call does not end the run.
func testAccess(t *testing.T, setup setupFunc, attempts map[string]accessCase) {
	for name, a := range attempts {
		words := a.words
		if words == nil {
			words = []string{"read", "write", "full"}
		}
		for _, access := range words {
			t.Run(name+" "+access, func(t *testing.T) {
				t.Parallel()
				var w *fixture
				w = setup(t, func(r *modeltest.Request) modeltest.Reply {
					next := len(r.ToolResults())
					if next >= len(a.calls) {
						return answer("done")
					}
					call := a.calls[next]
					call.Arguments = strings.ReplaceAll(call.Arguments, "REPO", w.repo)
					return modeltest.Reply{call}
				}, map[string]string{".gitignore": "made-*\n", "sub/keep": ""})
				r, o := w.run("make files", append([]string{"--access", access}, a.args...)...)
				w.wantAnswer("done", r, o)
				requests := w.wantRequests(len(a.calls) + 1)
				_, err := os.Stat(filepath.Join(w.repo, a.makes))
				if want := slices.Contains(a.under, access); (err == nil) != want {
					t.Errorf("%s was created: %v, want %v; the tool results are %q", a.makes, err == nil, want, requests[len(requests)-1].ToolResults())
				}
			})
		}
	}
}
