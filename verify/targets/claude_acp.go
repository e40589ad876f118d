package targets

import (
	"slices"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
)

// ClaudeAgentACP returns the target of claude-agent-acp, tested with 0.101.0.
func ClaudeAgentACP() verify.Target {
	t := Claude()
	t.Runtime, t.Verified = "claude-agent-acp", record("claude-agent-acp")
	t.Model, t.Requested = "opus", "claude-opus-5-5" // it has efforts
	env := t.Env
	t.Env = func(s *modeltest.Server) []string {
		return append(env(s), "DISABLE_COMPACT=1") // otherwise it compacts long prompts
	}
	t.Keeps = append(slices.Clone(t.Keeps), ".cache", ".npm")
	t.JSON = nil
	t.Known = map[string]string{
		"prompt-3mb":  "the models that it offers have no room for it",
		"usage":       "it reports neither reasoning tokens nor those of what it asks the model besides",
		"plants-fire": "it uses nothing of the repository, even with trust",
	}
	return t
}
