//go:build acceptance

package acceptance

import (
	"strings"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

func TestClaudeGetsThePromptWhole(t *testing.T) {
	t.Parallel()
	provePrompts(t, newClaude, prompts())
}

func TestClaudeReportsTheUsageOfTheRun(t *testing.T) {
	t.Parallel()
	proveUsage(t, newClaude)
}

func TestClaudeRefusesATooLongPromptBeforeItStarts(t *testing.T) {
	t.Parallel()
	proveTooLong(t, newClaude(t, modeltest.Replies(), nil), 10<<20)
}

// A prompt that names a file arrives whole; Claude Code puts the file beside it.
func TestClaudeAddsTheFileAPromptNames(t *testing.T) {
	t.Parallel()
	w := newClaude(t, modeltest.Replies(answer("ok")), map[string]string{"fact.txt": "the sky is blue\n"})
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

func TestClaudeGetsEachAgentsMDOnce(t *testing.T) {
	t.Parallel()
	proveLayers(t, newClaude, layouts("CLAUDE.md", ".claude"))
}

func TestClaudeGetsEachAgentsMDOnceInATrustedWorkspace(t *testing.T) {
	t.Parallel()
	proveLayers(t, newClaude, layouts("CLAUDE.md", ".claude"), "--trust-workspace")
}

func TestClaudeGetsLongAgentsMDWhole(t *testing.T) {
	t.Parallel()
	proveLongInstructions(t, newClaude)
}

func TestClaudeResumesASession(t *testing.T) {
	t.Parallel()
	proveResume(t, newClaude)
}

func TestClaudeRefusesAnUnknownSession(t *testing.T) {
	t.Parallel()
	proveUnknownSessions(t, newClaude, 1)
}
