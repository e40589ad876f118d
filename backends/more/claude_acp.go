package more

import (
	"encoding/json"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
	"github.com/busdk/bus-agent/session/acp"
)

// claudeCodeACP describes the first adapter of Claude Code.
func claudeCodeACP() registry.Runtime { return claudeACP("claude-code-acp", "0.16.2") }

// claudeAgentACP describes the adapter that followed it.
func claudeAgentACP() registry.Runtime { return claudeACP("claude-agent-acp", "0.23.1") }

// claudeACP describes an adapter of Claude Code for the Agent Client Protocol.
func claudeACP(id, version string) registry.Runtime {
	rt := define(id, described.Definition{
		Name:        id,
		Executables: []string{id},
		InstallURL:  "https://www.npmjs.com/package/@zed-industries/" + id,
		TokenEnv:    []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
		Output:      "acp",
		// Mode acceptEdits edits files anywhere that the user's settings name, and
		// bypassPermissions is refused to root.
		Access: map[agent.Access]described.Setting{
			agent.AccessRead:  {Mode: "default"},
			agent.AccessWrite: {Mode: "default", AcceptEdits: true},
			agent.AccessFull:  {Mode: "default"},
		},
		Efforts: map[agent.ReasoningEffort]described.Setting{
			agent.EffortLow:    {Env: map[string]*string{"CLAUDE_CODE_EFFORT_LEVEL": new("low")}},
			agent.EffortMedium: {Env: map[string]*string{"CLAUDE_CODE_EFFORT_LEVEL": new("medium")}},
			agent.EffortHigh:   {Env: map[string]*string{"CLAUDE_CODE_EFFORT_LEVEL": new("high")}},
		},
		ACP: &described.ACP{
			Models: true,
			// Without settings, hooks, MCP servers and skills of the repository.
			Meta: map[string]json.RawMessage{
				"claudeCode":   json.RawMessage(`{"options":{"settingSources":["user"],"extraArgs":{"strict-mcp-config":null}}}`),
				"systemPrompt": json.RawMessage(`{"append":"{system-prompt}"}`),
			},
		},
		SlashCommands: true,
		SilenceFails:  true, // after an interrupt, claude-agent-acp ends the next turn at once
		Failures: []described.Failure{
			{Kind: agent.FailureAuthentication, Contains: []string{"API Error: 401", "API Error: 403", "/login"}},
			{Kind: agent.FailureQuota, Contains: []string{"API Error: 429", "rate limit"}},
		},
		Env: map[string]*string{"CLAUDE_CODE_MAX_RETRIES": new("3"), "CLAUDECODE": nil}, // ten take three minutes
	})
	rt.NamedOnly = true // it has no runs
	rt.TestedVersion = version
	rt.VersionInput = acp.Greeting
	rt.Provider = "anthropic"
	rt.SessionUUIDs = true
	rt.PrivateTemp = true
	rt.Protected = []string{".claude", ".mcp.json"}
	return rt
}
