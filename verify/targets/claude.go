package targets

import (
	"fmt"
	"os"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
)

// Claude returns the target of Claude Code, tested with 2.1.332.
func Claude() verify.Target {
	return verify.Target{
		Runtime:  "claude",
		Verified: record("claude"),
		Model:    "claude-opus-5-5",
		Env: func(s *modeltest.Server) []string {
			env := []string{
				"ANTHROPIC_BASE_URL=" + s.AnthropicURL(),
				"ANTHROPIC_API_KEY=" + key,
				"SHELL=/bin/bash",          // used by the tool Bash
				"ENABLE_TOOL_SEARCH=false", // otherwise the model has to search for the tools of MCP servers
			}
			if os.Geteuid() == 0 {
				env = append(env, "IS_SANDBOX=1") // otherwise it refuses full access as root
			}
			return env
		},
		Keeps: []string{".claude", ".claude.json", ".claude.json.backup"},
		Tools: []string{"Read", "Skill"},
		Edit: func(path string) modeltest.ToolCall {
			return call("Write", map[string]string{"file_path": path, "content": "x"})
		},
		Command: func(command string) modeltest.ToolCall {
			return call("Bash", map[string]string{"command": command, "description": "try"})
		},
		JSON: func(value string) modeltest.Reply {
			return modeltest.Reply{modeltest.ToolCall{Name: "StructuredOutput", Arguments: value}}
		},
		Context: []string{"CLAUDE.md"},
		Plants: func(program func(string) string) map[string]string {
			return map[string]string{
				".claude/settings.json": fmt.Sprintf(`{"enableAllProjectMcpServers":true,"hooks":{"SessionStart":%s,"PreToolUse":%s}}`,
					hook(program("start-hook")), hook(program("tool-hook"))),
				".mcp.json": fmt.Sprintf(`{"mcpServers":{"planted":{"command":%q}}}`, program("mcp")),
			}
		},
	}
}
