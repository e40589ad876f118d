//go:build acceptance

package acceptance

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// A prompt that names a file is unchanged; Gemini CLI adds the file.
func TestGeminiAddsFileNamedInPrompt(t *testing.T) {
	t.Parallel()
	w := newGemini(t, modeltest.Replies(answer("ok")), map[string]string{"fact.txt": "the sky is blue\n"})
	r, o := w.run("look at @fact.txt please")
	w.wantAnswer("ok", r, o)
	request := w.wantRequests(1)[0]
	if got := lastPrompt(request); !strings.Contains(strings.Join(request.Texts("user"), "\n"), "look at @fact.txt please") {
		t.Errorf("the model got %q", got)
	}
	if request.Count("the sky is blue") != 1 {
		t.Error("the file is not in the request; docs/runtimes says it is")
	}
}

func TestGeminiGetsEachAgentsMDOnce(t *testing.T) {
	t.Parallel()
	testAgentsMD(t, newGemini, furtherLayouts("GEMINI.md", ".gemini"))
}

// In a trusted workspace AGENTS.md is added to the repository's settings.
func TestGeminiGetsEachAgentsMDOnceWithTrust(t *testing.T) {
	t.Parallel()
	trusted := func(t *testing.T, script modeltest.Script, files map[string]string) *fixture {
		w := newGemini(t, script, files)
		w.mayAdd = []string{".gemini/settings.json", ".geminiignore"}
		return w
	}
	testAgentsMD(t, trusted, layouts("GEMINI.md", ".gemini"), "--trust-workspace")
}

func TestGeminiTrustIsUndone(t *testing.T) {
	t.Parallel()
	w := newGemini(t, modeltest.Always(answer("ok")), layered())
	writeFiles(t, w.repo, map[string]string{
		".geminiignore":         "*.log\n",
		".gemini/settings.json": "{\n\t// mine\n\t\"ui\": {\"hideBanner\": true},\n}\n",
	})
	w.commit("mine")
	w.mayAdd = []string{".gemini/settings.json", ".geminiignore"}
	for range 2 {
		r, o := w.run("hello", "--trust-workspace")
		w.wantAnswer("ok", r, o)
	}
	w.mayAdd = nil
	if w.status() == "" {
		t.Error("the runs added nothing, so the test is meaningless")
	}
	for _, request := range w.wantRequests(2) {
		checkMarks(t, request, rootMark)
	}
	cmd := exec.Command(busAgent, "instructions", "clean")
	cmd.Dir, cmd.Env = w.repo, w.environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := w.status(); got != "" {
		t.Errorf("git status after the clean command:\n%s", got)
	}
}

func TestGeminiGetsWholeLongAgentsMD(t *testing.T) {
	t.Parallel()
	testLongInstructions(t, newGemini)
}

func TestGeminiRefusesUnknownSession(t *testing.T) {
	t.Parallel()
	testUnknownSessions(t, newGemini, 2)
}
