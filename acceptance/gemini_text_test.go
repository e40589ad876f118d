//go:build acceptance

package acceptance

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

func TestGeminiGetsThePromptWhole(t *testing.T) {
	t.Parallel()
	provePrompts(t, newGemini, prompts())
}

func TestGeminiReportsTheUsageOfTheRun(t *testing.T) {
	t.Parallel()
	proveUsage(t, newGemini)
}

func TestGeminiRefusesATooLongPromptBeforeItStarts(t *testing.T) {
	t.Parallel()
	proveTooLong(t, newGemini(t, modeltest.Replies(), nil), 3<<20)
}

// A prompt that names a file arrives whole; Gemini CLI puts the file beside it.
func TestGeminiAddsTheFileAPromptNames(t *testing.T) {
	t.Parallel()
	w := newGemini(t, modeltest.Replies(answer("ok")), map[string]string{"fact.txt": "the sky is blue\n"})
	r, o := w.run("look at @fact.txt please")
	w.succeeds("ok", r, o)
	request := w.asked(1)[0]
	if got := lastPrompt(request); !strings.Contains(strings.Join(request.Texts("user"), "\n"), "look at @fact.txt please") {
		t.Errorf("the model got %q", got)
	}
	if request.Count("the sky is blue") != 1 {
		t.Error("the file is not in the request: the page of the runtime says it is")
	}
}

func TestGeminiGetsEachAgentsMDOnce(t *testing.T) {
	t.Parallel()
	proveLayers(t, newGemini, layouts("GEMINI.md", ".gemini"))
}

// In a trusted workspace AGENTS.md is added to the repository's settings, and
// the clean command takes it back.
func TestGeminiGetsEachAgentsMDOnceInATrustedWorkspace(t *testing.T) {
	t.Parallel()
	trusted := func(t *testing.T, script modeltest.Script, files map[string]string) *world {
		w := newGemini(t, script, files)
		w.adds = []string{".gemini/settings.json", ".geminiignore"}
		return w
	}
	proveLayers(t, trusted, layouts("GEMINI.md", ".gemini"), "--trust-workspace")
}

func TestGeminiTrustIsTakenBack(t *testing.T) {
	t.Parallel()
	w := newGemini(t, modeltest.Always(answer("ok")), layered())
	writeFiles(t, w.repo, map[string]string{
		".geminiignore":         "*.log\n",
		".gemini/settings.json": "{\n\t// mine\n\t\"ui\": {\"hideBanner\": true},\n}\n",
	})
	w.git("add", "-A")
	w.git("-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-q", "-m", "mine")
	w.adds = []string{".gemini/settings.json", ".geminiignore"}
	for range 2 {
		r, o := w.run("hello", "--trust-workspace")
		w.succeeds("ok", r, o)
	}
	w.adds = nil
	if w.status() == "" {
		t.Error("the runs added nothing: this test proves nothing")
	}
	for _, request := range w.asked(2) {
		checkLayers(t, request, rootMark)
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

func TestGeminiGetsLongAgentsMDWhole(t *testing.T) {
	t.Parallel()
	proveLongInstructions(t, newGemini)
}

func TestGeminiResumesASession(t *testing.T) {
	t.Parallel()
	proveResume(t, newGemini)
}

func TestGeminiRefusesAnUnknownSession(t *testing.T) {
	t.Parallel()
	proveUnknownSessions(t, newGemini, 2)
}
