package targets

import (
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
)

// Copilot returns the target of GitHub Copilot CLI, tested with 1.0.102.
func Copilot() verify.Target {
	return verify.Target{
		Runtime:  "copilot",
		Verified: record("copilot"),
		Model:    "scripted",
		Env: func(s *modeltest.Server) []string {
			return []string{
				"COPILOT_PROVIDER_BASE_URL=" + s.OpenAIURL(),
				"COPILOT_PROVIDER_API_KEY=" + key,
				"COPILOT_PROVIDER_MAX_PROMPT_TOKENS=4000000", // otherwise it compacts long prompts
				"COPILOT_PROVIDER_MAX_OUTPUT_TOKENS=8000",
				"COPILOT_OFFLINE=true",
			}
		},
		Keeps: []string{".cache", ".copilot"},
		Known: map[string]string{
			"prompt-dash":  "the time precedes the prompt",
			"prompt-slash": "it takes the prompt for one of its commands, despite the line break",
			"prompt-at":    "the time precedes the prompt",
			"prompt-bang":  "the time precedes the prompt",
			"prompt-space": "the time precedes the prompt",
			"prompt-1mb":   "the time precedes the prompt",
			"prompt-3mb":   "the time precedes the prompt",
			"prompt-nul":   "the time precedes the prompt",
			"usage":        "its output has no tokens",
		},
		Edit: func(path string) modeltest.ToolCall {
			return call("create", map[string]string{"path": path, "file_text": "x"})
		},
		Command: func(command string) modeltest.ToolCall {
			return call("bash", map[string]any{"command": command, "description": "try", "initial_wait": 30})
		},
	}
}
