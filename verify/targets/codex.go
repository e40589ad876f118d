package targets

import (
	"fmt"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
)

// Codex returns the target of the Codex CLI, tested with 0.171.0.
func Codex() verify.Target {
	return verify.Target{
		Runtime:  "codex",
		Verified: record("codex"),
		Model:    "gpt-5.5",

		ServerModel: "gpt-5-codex",

		Env: func(*modeltest.Server) []string { return []string{"VERIFY_API_KEY=" + key} },
		Args: func(s *modeltest.Server) (args []string) {
			for _, setting := range codexProvider(s) {
				args = append(args, "-c", setting)
			}
			return args
		},
		Edit: func(path string) modeltest.ToolCall {
			return modeltest.ToolCall{Name: "apply_patch", Arguments: "*** Begin Patch\n*** Add File: " + path + "\n+x\n*** End Patch\n"}
		},
		Command: func(command string) modeltest.ToolCall {
			return call("exec_command", map[string]string{"cmd": command})
		},
		Guarded: func(command string) modeltest.ToolCall {
			return call("exec_command", map[string]string{"cmd": command, "sandbox_permissions": "require_escalated", "justification": "to try"})
		},
		Plants: func(program func(string) string) map[string]string {
			return map[string]string{".codex/config.toml": fmt.Sprintf("[mcp_servers.planted]\ncommand = %q\n", program("mcp"))}
		},
		Replaces: []string{"AGENTS.override.md"},
	}
}

// codexProvider returns the lines of config.toml that point Codex at a server. By default it
// repeats a failed request for up to two minutes.
func codexProvider(s *modeltest.Server) []string {
	const provider = `model_providers.verify={name="verify",base_url=%q,wire_api="responses",env_key="VERIFY_API_KEY",request_max_retries=1,stream_max_retries=1}`
	return []string{`model_provider="verify"`, fmt.Sprintf(provider, s.OpenAIURL())}
}
