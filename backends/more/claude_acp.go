package more

import (
	"encoding/json"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
)

// claudeAgentACP describes the adapter of Claude Code for the Agent Client Protocol.
func claudeAgentACP() registry.Runtime {
	const id = "claude-agent-acp"
	rt := define(id, described.Definition{
		Name:        id,
		Executables: []string{id},
		InstallURL:  "https://www.npmjs.com/package/@agentclientprotocol/" + id,
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
			{Kind: agent.FailureQuota, Contains: []string{"API Error: 429", "Request rejected (429)", "rate limit"}},
		},
		Env: map[string]*string{"CLAUDE_CODE_MAX_RETRIES": new("3"), "CLAUDECODE": nil}, // ten take three minutes
	})
	rt.NamedOnly = true // it has no runs
	rt.TestedVersion = "0.101.0"
	rt.Provider = "anthropic"
	rt.SessionUUIDs = true
	rt.PrivateTemp = true
	rt.Protected = []string{".claude", ".mcp.json"}
	return rt
}
