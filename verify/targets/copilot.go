package targets

import (
	"regexp"
	"sync"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
)

// copilotTime is the time that precedes each prompt.
var copilotTime = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^<current_datetime>[^<]*</current_datetime>\n\n`)
})

func afterTime(message string) string { return copilotTime().ReplaceAllLiteralString(message, "") }

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
		Keeps:  []string{".cache", ".copilot"},
		Prompt: afterTime,
		Known: map[string]string{
			"prompt-space":   "it removes blanks and line ends at the end of the prompt",
			"prompt-1mb":     "it removes blanks and line ends at the end of the prompt",
			"prompt-3mb":     "it removes blanks and line ends at the end of the prompt",
			"session-turns":  "it reads AGENTS.md itself in a session",
			"session-resume": "it reads AGENTS.md itself in a session",
			"prompt-slash":   "it takes the prompt for one of its commands, so the run is refused",
			"usage":          "its output has no tokens",
		},
		Tools: []string{"view", "glob"},
		Edit: func(path string) modeltest.ToolCall {
			return call("create", map[string]string{"path": path, "file_text": "x"})
		},
		Command: func(command string) modeltest.ToolCall {
			return call("bash", map[string]any{"command": command, "description": "try", "initial_wait": 30})
		},
	}
}
