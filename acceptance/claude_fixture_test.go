//go:build acceptance

package acceptance

import (
	"os"
	"testing"

	"github.com/busdk/bus-agent/modeltest"
)

// newClaude makes a world in which run runs Claude Code, by key. Claude Code
// keeps its state and sessions in the home.
func newClaude(t *testing.T, script modeltest.Script, files map[string]string) *fixture {
	t.Helper()
	w := newCodex(t, script, files)
	w.agent, w.modelID = "claude", "claude-opus-5-5"
	w.keptInHome = []string{".claude", ".claude.json", ".claude.json.backup"}
	w.env = []string{
		"ANTHROPIC_BASE_URL=" + w.model.AnthropicURL(),
		"ANTHROPIC_API_KEY=sk-acceptance",
		"SHELL=/bin/bash", // what the tool of this name runs
	}
	if os.Geteuid() == 0 {
		// Claude Code refuses full access to root otherwise.
		w.env = append(w.env, "IS_SANDBOX=1")
	}
	return w
}
