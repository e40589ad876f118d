package targets

import (
	"encoding/json"
	"strings"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
)

// Qwen returns the target of Qwen Code, tested with 0.24.4.
func Qwen() verify.Target {
	return verify.Target{
		Runtime:  "qwen",
		Verified: record("qwen"),
		Model:    "qwen3-coder-plus",
		Env: func(s *modeltest.Server) []string {
			return []string{"OPENAI_BASE_URL=" + s.OpenAIURL(), "OPENAI_API_KEY=" + key}
		},
		Home: func(*modeltest.Server) map[string]string {
			return map[string]string{
				".qwen/settings.json": `{"security":{"auth":{"selectedType":"openai"}},"privacy":{"usageStatisticsEnabled":false},"model":{"generationConfig":{"modalities":{"image":true,"pdf":true}}}}`,
			}
		},
		ServerCalls: func(server, tool, arguments string) []modeltest.ToolCall {
			name := "mcp__" + server + "__" + tool
			return []modeltest.ToolCall{
				call("tool_search", map[string]string{"query": "select:" + name}),
				call("tool_call", map[string]any{"name": name, "arguments": json.RawMessage(arguments)}),
			}
		},
		Keeps:  []string{".qwen"},
		Prompt: func(message string) string { return strings.TrimSuffix(message, "\n\n") },
		Known: map[string]string{
			"prompt-at":     "it inserts a blank before the @",
			"usage":         "it does not report reasoning tokens",
			"write-outside": "its tool edits files anywhere",
		},
		Tools: []string{"glob", "read_file"},
		Edit: func(path string) modeltest.ToolCall {
			return call("write_file", map[string]string{"file_path": path, "content": "x"})
		},
		Command: func(command string) modeltest.ToolCall {
			return call("run_shell_command", map[string]any{"command": command, "description": "try", "is_background": false})
		},
	}
}
