package targets

import (
	"fmt"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
)

// Droid returns the target of Droid, tested with 0.215.0.
func Droid() verify.Target {
	const settings = `{"cloudSessionSync":false,"customModels":[{"model":"scripted","id":"custom:scripted","displayName":"verify",` +
		`"baseUrl":%q,"apiKey":%q,"provider":"generic-chat-completion-api","reasoningEffort":"high","maxOutputTokens":8000,"maxContextLimit":4000000}]}`
	return verify.Target{
		Runtime:   "droid",
		Verified:  record("droid"),
		Model:     "custom:scripted",
		Requested: "scripted",
		// It asks its service for a session before it resumes it.
		Env: func(s *modeltest.Server) []string {
			return []string{"FACTORY_API_KEY=fk-verify", "FACTORY_API_BASE_URL=" + s.URL()}
		},
		Home: func(s *modeltest.Server) map[string]string {
			return map[string]string{".factory/settings.json": fmt.Sprintf(settings, s.OpenAIURL(), key)}
		},
		Keeps: []string{".factory"},
		Tools: []string{"Read", "Grep"},
		Edit: func(path string) modeltest.ToolCall {
			return call("Create", map[string]string{"file_path": path, "content": "x"})
		},
		Command: func(command string) modeltest.ToolCall {
			return call("Execute", map[string]string{"command": command, "summary": "try", "riskLevel": "low", "riskLevelReason": "safe"})
		},
		Context: []string{"CLAUDE.md"},
		Known: map[string]string{
			"agents-md":       "it begins with the file of the workdir",
			"agents-md-link":  "it leaves out files once they have 80,000 characters",
			"agents-md-empty": "it begins with the file of the workdir",
			"agents-md-long":  "it leaves out files once they have 80,000 characters",
			"http-500":        "it repeats the request for more than a minute",
			"usage":           "it reports no reasoning tokens, and no tokens of a resumed run alone",
			"write-outside":   "its tool edits files anywhere",
		},
	}
}
