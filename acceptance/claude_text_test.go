//go:build acceptance

package acceptance

import (
	"strings"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// A prompt that names a file is unchanged; Claude Code adds the file.
func TestClaudeAddsFileNamedInPrompt(t *testing.T) {
	t.Parallel()
	w := newClaude(t, modeltest.Replies(answer("ok")), map[string]string{"fact.txt": "the sky is blue\n"})
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

func TestClaudeGetsEachAgentsMDOnce(t *testing.T) {
	t.Parallel()
	testAgentsMD(t, newClaude, furtherLayouts("CLAUDE.md", ".claude"))
}

func TestClaudeGetsEachAgentsMDOnceWithTrust(t *testing.T) {
	t.Parallel()
	testAgentsMD(t, newClaude, layouts("CLAUDE.md", ".claude"), "--trust-workspace")
}

func TestClaudeGetsWholeLongAgentsMD(t *testing.T) {
	t.Parallel()
	testLongInstructions(t, newClaude)
}

func TestClaudeRefusesUnknownSession(t *testing.T) {
	t.Parallel()
	testUnknownSessions(t, newClaude, 1)
}
