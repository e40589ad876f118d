package targets

import (
	"fmt"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
)

// Gemini returns the target of the Gemini CLI, tested with 0.61.0.
func Gemini() verify.Target {
	return verify.Target{
		Runtime:  "gemini",
		Verified: record("gemini"),
		Model:    "gemini-2.5-pro",
		Env: func(s *modeltest.Server) []string {
			return []string{"GOOGLE_GEMINI_BASE_URL=" + s.GeminiURL(), "GEMINI_API_KEY=" + key}
		},
		Home: func(*modeltest.Server) map[string]string { // a login by key
			return map[string]string{
				".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}`,
			}
		},
		Tools: []string{"read_file", "glob"},
		Edit: func(path string) modeltest.ToolCall {
			return call("write_file", map[string]string{"file_path": path, "content": "x"})
		},
		Command: func(command string) modeltest.ToolCall {
			return call("run_shell_command", map[string]string{"command": command, "description": "try"})
		},
		Context: []string{"GEMINI.md"},
		Plants: func(program func(string) string) map[string]string {
			return map[string]string{
				".gemini/settings.json": fmt.Sprintf(`{"hooks":{"SessionStart":%s,"BeforeTool":%s},"mcpServers":{"planted":{"command":%q}}}`,
					hook(program("start-hook")), hook(program("tool-hook")), program("mcp")),
			}
		},
	}
}
