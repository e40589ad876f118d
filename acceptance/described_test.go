//go:build acceptance

package acceptance

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

func TestDescribedRuntimeCommands(t *testing.T) {
	t.Parallel()
	w := newDescribed(t, modeltest.Always(answer("ok")), nil)
	if got := strings.Fields(w.mustExec("", "detect")); !slices.Contains(got, "qwen-bare") {
		t.Errorf("detect finds %q", got)
	}
	r, o := w.run("hello")
	w.wantAnswer("ok", r, o)
	if r.Runtime != "qwen-bare" || r.Model != w.modelID {
		t.Errorf("reported %s, %s", r.Runtime, r.Model)
	}
	w.mustExec("", "set", "runtime", "qwen-bare")
	w.mustExec("", "set", "model", "another-model")
	if o := w.exec("hello", "run", "--prompt", "-"); o.code != 0 || o.stdout != "ok\n" {
		t.Errorf("a run by preference: %v", o)
	}
	for i, want := range []string{w.modelID, "another-model"} {
		if got := w.wantRequests(2)[i].Model(); got != want {
			t.Errorf("request %d has model %q, want %q", i, got, want)
		}
	}
	w.mustExec("", "unset", "runtime-definition", "qwen-bare")
	if o := w.exec("hello", "run", "--agent", "qwen-bare", "--prompt", "-"); o.code != 2 {
		t.Errorf("it is known without its definition: %v", o)
	}
}

func TestDescribedRuntimeGetsWholePrompt(t *testing.T) {
	t.Parallel()
	own := prompts()
	delete(own, "an @ without a file") // see TestDescribedRuntimeAddsFileNamedInPrompt
	testPrompts(t, newDescribed, own)
}

// The CLI's own instruction file does not reach the model.
func TestDescribedRuntimeGetsEachAgentsMDOnce(t *testing.T) {
	t.Parallel()
	all := layouts("QWEN.md", ".qwen")
	for name, l := range all {
		l.own = 0
		all[name] = l
	}
	testAgentsMD(t, newDescribed, all)
}

func TestDescribedRuntimeGetsWholeLongAgentsMD(t *testing.T) {
	t.Parallel()
	testLongInstructions(t, newDescribed)
}

// File tools are not limited to the workdir; commands need full access.
func TestDescribedRuntimeAccessHolds(t *testing.T) {
	t.Parallel()
	write := func(path string) modeltest.ToolCall {
		return modeltest.ToolCall{Name: "edit", Arguments: `{"file_path":"` + path + `","old_string":"","new_string":"x"}`}
	}
	testAccess(t, newDescribed, map[string]accessCase{
		"file":          {calls: callsOf(write("REPO/sub/made-file")), makes: "sub/made-file", under: []string{"write", "full"}},
		"file above":    {calls: callsOf(write("REPO/../made-file")), makes: "../made-file", under: []string{"write", "full"}},
		"command":       {calls: callsOf(shell("touch sub/made-by-touch")), makes: "sub/made-by-touch", under: []string{"full"}},
		"command above": {calls: callsOf(shell("touch ../made-above")), makes: "../made-above", under: []string{"full"}},
	})
}

func TestDescribedRuntimeUsesTools(t *testing.T) {
	t.Parallel()
	w := newDescribed(t, modeltest.Replies(
		modeltest.Reply{modeltest.ToolCall{Name: "read_file", Arguments: `{"file_path":"REPO/fact.txt"}`}},
		modeltest.Reply{modeltest.Text{"It is ", "blue."}},
	), map[string]string{"fact.txt": "the sky is blue\n"})
	r, o := w.run("what colour?")
	w.wantAnswer("It is blue.", r, o)
	if results := w.wantRequests(2)[1].ToolResults(); len(results) != 1 {
		t.Errorf("the model got the tool results %q", results)
	}
}

func TestDescribedRuntimeFailures(t *testing.T) {
	t.Parallel()
	status := func(code int, message string) modeltest.Reply {
		// With this header the CLI waits less between attempts.
		return modeltest.Reply{modeltest.HTTPError{Status: code, Message: message, Header: http.Header{"Retry-After-Ms": {"1"}}}}
	}
	patient := func(t *testing.T, script modeltest.Script, files map[string]string) *fixture {
		w := newDescribed(t, script, files)
		w.limit *= 3 // it retries for more than a minute
		return w
	}
	testFailures(t, patient, map[string]failure{
		"401":               {reply: status(http.StatusUnauthorized, "the key is refused"), kind: "agent", says: "exit code 1", tail: "the key is refused]", asked: 1},
		"400":               {reply: status(http.StatusBadRequest, "what is this?"), kind: "agent", says: "exit code 1", tail: "what is this?]", asked: 1},
		"500":               {reply: status(http.StatusInternalServerError, "boom"), kind: "agent", says: "exit code 1", tail: "boom]", asked: 28},
		"cut in the middle": {reply: modeltest.Reply{modeltest.Text{"half an ans"}, modeltest.Cut{}}, kind: "agent", says: "exit code 1", tail: "[API Error: terminated (cause: UND_ERR_SOCKET: other side closed)]", asked: 10},
		"empty answer":      {reply: nil, kind: "agent", says: "exit code 1", tail: "[API Error: Model stream ended with empty response text.]", asked: 10},
		"no headers":        {reply: modeltest.Reply{modeltest.Silence{}}, args: []string{"--timeout", "15s"}, kind: "timeout", says: "within 15s", asked: 1},
		"silent stream":     {reply: modeltest.Reply{modeltest.Text{}, modeltest.Silence{}}, args: []string{"--timeout", "15s"}, kind: "timeout", says: "within 15s", asked: 1},
	})
}

func TestDescribedRuntimeInterrupted(t *testing.T) {
	t.Parallel()
	testInterrupt(t, newDescribed, shell("touch running; sleep 300"))
}

// A command that is running at the timeout ends with the run.
func TestDescribedRuntimeLeavesNoProcessAfterATimeout(t *testing.T) {
	t.Parallel()
	w := newDescribed(t, modeltest.Always(modeltest.Reply{shell("setsid sleep 300 & touch running; sleep 300")}), map[string]string{".gitignore": "running\n"})
	r, o := w.run("hello", "--access", "full", "--timeout", "75s")
	if o.code != 1 || r.Kind != "timeout" {
		t.Errorf("want a timeout, got %+v\n%v", r, o)
	}
	if got := listFiles(t, w.repo)["running"]; got == "" {
		t.Errorf("the command has not begun, so nothing is proved: %v", o)
	}
}

// The CLI adds a file named in the prompt and inserts a blank before any other "@". This
// cannot be turned off.
func TestDescribedRuntimeAddsFileNamedInPrompt(t *testing.T) {
	t.Parallel()
	w := newDescribed(t, modeltest.Always(answer("ok")), map[string]string{"fact.txt": "the sky is blue\n"})
	r, o := w.run("look at @fact.txt please")
	w.wantAnswer("ok", r, o)
	request := w.wantRequests(1)[0]
	if !strings.Contains(strings.Join(request.Texts("user"), "\n"), "look at @fact.txt please") || request.Count("the sky is blue") != 1 {
		t.Errorf("the model got %q", request.Texts("user"))
	}
	r, o = w.run("ask @missing-here and a@b.example about it")
	w.wantAnswer("ok", r, o)
	if got, want := strings.TrimRight(lastPrompt(w.wantRequests(2)[1]), "\n"), "ask @missing-here and a @b.example about it"; got != want {
		t.Errorf("the model got %q, want %q: the page says so", got, want)
	}
}
