//go:build acceptance

package acceptance

import (
	"os"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// newClaude returns a fixture for Claude Code with a key. Claude Code keeps its state and
// sessions in the home.
func newClaude(t *testing.T, script modeltest.Script, files map[string]string) *fixture {
	t.Helper()
	w := newCodex(t, script, files)
	w.agent, w.modelID = "claude", "claude-opus-5-5"
	w.keptInHome = []string{".claude", ".claude.json", ".claude.json.backup"}
	w.env = []string{
		"ANTHROPIC_BASE_URL=" + w.model.AnthropicURL(),
		"ANTHROPIC_API_KEY=sk-acceptance",
		"SHELL=/bin/bash", // used by the tool Bash
	}
	if os.Geteuid() == 0 {
		// Otherwise Claude Code refuses full access as root.
		w.env = append(w.env, "IS_SANDBOX=1")
	}
	return w
}
