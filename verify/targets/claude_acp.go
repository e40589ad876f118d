package targets

import (
	"slices"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
)

// ClaudeAgentACP returns the target of claude-agent-acp, tested with 0.23.1.
func ClaudeAgentACP() verify.Target {
	return claudeACP("claude-agent-acp", map[string]string{
		"usage":             "it does not report reasoning tokens",
		"session-interrupt": "it ends the turn after an interrupt at once, and answers in the next one",
	})
}

// ClaudeCodeACP returns the target of claude-code-acp, tested with 0.16.2.
func ClaudeCodeACP() verify.Target {
	return claudeACP("claude-code-acp", map[string]string{
		"usage":          "it reports no tokens",
		"leaves-nothing": "it leaves numbered copies of .claude.json in the home",
	})
}

// claudeACP returns the target of an adapter of Claude Code.
func claudeACP(id string, known map[string]string) verify.Target {
	t := Claude()
	t.Runtime, t.Verified = id, record(id)
	t.Model, t.Requested = "claude-opus-4-6[1m]", "claude-opus-4-6" // it has efforts and room for long prompts
	env := t.Env
	t.Env = func(s *modeltest.Server) []string {
		return append(env(s), "DISABLE_COMPACT=1") // otherwise it compacts long prompts
	}
	t.Keeps = append(slices.Clone(t.Keeps), ".cache", ".npm")
	t.JSON = nil
	t.Known = known
	t.Known["plants-fire"] = "it uses nothing of the repository, even with trust"
	return t
}
