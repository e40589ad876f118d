package targets

import (
	"fmt"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
)

// Cline returns the target of Cline, tested with 3.0.65.
func Cline() verify.Target {
	const providers = `{"version":1,"lastUsedProvider":"openai-compatible","modes":{},"providers":{"openai-compatible":{"settings":` +
		`{"provider":"openai-compatible","apiKey":%q,"model":"scripted","baseUrl":%q},"updatedAt":"2026-11-26T00:00:00.000Z","tokenSource":"manual"}}}`
	return verify.Target{
		Runtime:  "cline",
		Verified: record("cline"),
		Home: func(s *modeltest.Server) map[string]string {
			return map[string]string{".cline/data/settings/providers.json": fmt.Sprintf(providers, key, s.OpenAIURL())}
		},
		Keeps: []string{".cline"},
		Known: map[string]string{
			"prompt-space":   "it removes blanks and line ends around the prompt",
			"prompt-1mb":     "it removes blanks and line ends around the prompt",
			"prompt-3mb":     "it removes blanks and line ends around the prompt",
			"http-429":       "its output does not tell a rate limit from other failures",
			"leaves-nothing": "it leaves checkpoints in the git repository",
			"usage":          "it reports no reasoning tokens",
			"write-outside":  "its tool edits files anywhere",
		},
		Edit: func(path string) modeltest.ToolCall {
			return call("editor", map[string]string{"path": path, "new_text": "x"})
		},
		Command: func(command string) modeltest.ToolCall {
			return call("run_commands", map[string]any{"commands": []string{command}})
		},
	}
}
