package targets

import (
	"fmt"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
)

// Pi returns the target of pi, tested with 1.6.0.
func Pi() verify.Target {
	const models = `{"providers":{"verify":{"baseUrl":%q,"api":"openai-completions","apiKey":%q,"models":[` +
		`{"id":"scripted","reasoning":true,"input":["text","image"],"contextWindow":4000000,"maxTokens":8000}]}}}`
	return verify.Target{
		Runtime:   "pi",
		Verified:  record("pi"),
		Model:     "verify/scripted",
		Requested: "scripted",
		Home: func(s *modeltest.Server) map[string]string {
			return map[string]string{".pi/agent/models.json": fmt.Sprintf(models, s.OpenAIURL(), key)}
		},
		Keeps: []string{".pi"},
		Known: map[string]string{
			"prompt-space":  "it removes blanks and line ends around the prompt",
			"prompt-1mb":    "it removes blanks and line ends around the prompt",
			"prompt-3mb":    "it removes blanks and line ends around the prompt",
			"usage":         "it does not report reasoning tokens",
			"write-outside": "its tool edits files anywhere",
		},
		Tools: []string{"read", "grep"},
		Edit: func(path string) modeltest.ToolCall {
			return call("write", map[string]string{"path": path, "content": "x"})
		},
		Command: func(command string) modeltest.ToolCall {
			return call("bash", map[string]string{"command": command})
		},
	}
}
