package targets

import (
	"fmt"

	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/verify"
)

// OpenCode returns the target of opencode, tested with 1.18.33.
func OpenCode() verify.Target {
	// Without the limits it compacts long prompts.
	const config = `{"autoupdate":false,"share":"disabled","enabled_providers":["verify"],"provider":{"verify":{` +
		`"npm":"@ai-sdk/openai-compatible","name":"verify","options":{"baseURL":%q,"apiKey":%q},"models":{"scripted":{` +
		`"name":"scripted","tool_call":true,"reasoning":true,"attachment":true,"modalities":{"input":["text","image","pdf"],"output":["text"]},"limit":{"context":4000000,"output":8000},"variants":{"low":{"reasoningEffort":"low"}}}}}}}`
	return verify.Target{
		Runtime:   "opencode",
		Verified:  record("opencode"),
		Model:     "verify/scripted",
		Requested: "scripted",
		Env: func(s *modeltest.Server) []string {
			return []string{
				"OPENCODE_CONFIG_CONTENT=" + fmt.Sprintf(config, s.OpenAIURL(), key),
				"OPENCODE_DISABLE_MODELS_FETCH=1",
				"npm_config_registry=" + s.URL(), // it installs a package at each start, in vain
			}
		},
		Keeps: []string{".cache/opencode", ".config/opencode", ".local/share/opencode", ".local/state/opencode", ".npm"},
		Known: map[string]string{
			"session-slash": "it takes the message for one of its commands, despite a line break; the turn fails",
		},
		Tools: []string{"read", "glob"},
		Edit: func(path string) modeltest.ToolCall {
			return call("write", map[string]string{"filePath": path, "content": "x"})
		},
		Command: func(command string) modeltest.ToolCall {
			return call("bash", map[string]string{"command": command, "description": "try"})
		},
	}
}
