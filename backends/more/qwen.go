package more

import (
	"bytes"
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
)

// qwen describes Qwen Code.
func qwen() registry.Runtime {
	rt := define("qwen", described.Definition{
		Name:        "Qwen Code",
		Executables: []string{"qwen"},
		InstallURL:  "https://github.com/QwenLM/qwen-code",
		TokenEnv:    []string{"OPENAI_API_KEY", "DASHSCOPE_API_KEY"},
		// Safe mode leaves out hooks, extensions, skills, MCP servers and context files.
		Args: []described.Argument{
			{"--safe-mode"}, {"--output-format=stream-json"}, {"--model={model}"}, {"--append-system-prompt={system-prompt}"}, {"--mcp-config={mcp-file}"}, {"--exclude-tools={deny-tools}"},
			{"--resume={resume}"}, {"{continue}"}, {"{access}"},
		},
		ACP: &described.ACP{
			Args: []described.Argument{{"--acp"}, {"--safe-mode"}, {"--model={model}"}, {"--append-system-prompt={system-prompt}"}, {"--mcp-config={mcp-file}"}, {"--exclude-tools={deny-tools}"}},
			// In mode auto-edit it edits files anywhere without an approval request.
			Access: map[agent.Access]described.Setting{
				agent.AccessRead:  {Mode: "plan"},
				agent.AccessWrite: {Mode: "default", AcceptEdits: true},
				agent.AccessFull:  {Mode: "yolo"},
			},
		},
		Access: map[agent.Access]described.Setting{
			agent.AccessRead:  {Args: []described.Argument{{"--approval-mode=plan"}}},
			agent.AccessWrite: {Args: []described.Argument{{"--approval-mode=auto-edit"}}},
			agent.AccessFull:  {Args: []described.Argument{{"--approval-mode=yolo"}}},
		},
		Continue:      []described.Argument{{"--continue"}},
		SlashCommands: true,
		Failures: []described.Failure{
			{Kind: agent.FailureAuthentication, Contains: []string{"[API Error: 401", "[API Error: 403", "No auth type is selected"}},
			{Kind: agent.FailureQuota, Contains: []string{"[API Error: 429"}},
		},
		// Otherwise it repeats each of its seven attempts for more than ten minutes.
		Home: &described.Home{Files: map[string]string{
			"defaults.json": `{"model":{"generationConfig":{"maxRetries":0}}}`,
		}},
		// The model gets descriptions of the commands, also with --safe-mode.
		Executed: []string{".qwen/settings.json", ".qwen/.env", ".env", ".qwen/commands"},
		// It removes old files in logs/openai.
		Reads: []string{".qwenignore", ".geminiignore", ".agentignore", ".aiignore", "logs/openai/*"},
		Env: map[string]*string{
			"QWEN_CODE_NO_RELAUNCH":           new("true"),
			"QWEN_CODE_SUPPRESS_YOLO_WARNING": new("1"),
			"QWEN_CODE_SYSTEM_DEFAULTS_PATH":  new("{home}/defaults.json"),
			"QWEN_DEBUG_LOG_FILE":             new("0"),
		},
	})
	rt.Run.Command = withServersAllowed(rt.Run.Command)
	rt.TestedVersion = "0.24.4"
	rt.Session.Options.Attachments = append(agent.ImageTypes(), agent.MediaPDF)
	rt.Decoder = func() formatters.Decoder { return dialect(new(qwenDecoder).line) }
	rt.Recognize = recognizeQwen
	rt.ReportsResult = true
	rt.SessionUUIDs = true
	rt.Protected = []string{".qwen"}
	rt.ReadingTools = []string{"glob", "grep_search", "list_directory", "read_file", "skill", "tool_search"}
	rt.QuietStderr = func(line []byte) bool { return bytes.HasPrefix(line, []byte("Retrying ")) } // the output has it too
	return rt
}

// withServersAllowed lets a run with write access call the tools of MCP servers. There is no
// user who could be asked.
func withServersAllowed(command func(registry.Invocation) (agent.Command, error)) func(registry.Invocation) (agent.Command, error) {
	return func(inv registry.Invocation) (agent.Command, error) {
		if inv.Access == agent.AccessWrite {
			inv.Args = slices.Clone(inv.Args)
			for _, s := range inv.MCPServers {
				inv.Args = append(inv.Args, "--allowed-tools=mcp__"+s.Name)
			}
		}
		return command(inv)
	}
}
