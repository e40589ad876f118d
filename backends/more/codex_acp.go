package more

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// codexACP describes the adapter of Codex for the Agent Client Protocol.
func codexACP() registry.Runtime {
	rt := define("codex-acp", described.Definition{
		Name:        "codex-acp",
		Executables: []string{"codex-acp"},
		InstallURL:  "https://www.npmjs.com/package/@agentclientprotocol/codex-acp",
		TokenEnv:    []string{"CODEX_API_KEY", "OPENAI_API_KEY"},
		Output:      "acp",
		Access: map[agent.Access]described.Setting{
			agent.AccessRead:  {Env: map[string]*string{codexMode: new("read-only")}},
			agent.AccessWrite: {Env: map[string]*string{codexMode: new("workspace-write")}, AcceptEdits: true},
			agent.AccessFull:  {Env: map[string]*string{codexMode: new("agent-full-access")}},
		},
		Efforts:       efforts(),
		ACP:           &described.ACP{Models: true},
		SlashCommands: true,
		Reads: []string{
			".agents/skills/**/SKILL.md", ".agents/skills/**/openai.yaml", ".codex/skills/**/SKILL.md", ".codex/skills/**/openai.yaml",
			".agents/skills/**/.c*-plugin/plugin.json", ".codex/skills/**/.c*-plugin/plugin.json",
			".c*-plugin/plugin.json", ".codex/.c*-plugin/plugin.json", ".agents/.c*-plugin/plugin.json",
			".codex/rules/*", ".codex/agents/**/*",
		},
		// It trusts the repository.
		Executed: []string{".codex/config.toml", ".codex/hooks.json"},
		Failures: []described.Failure{
			{Kind: agent.FailureAuthentication, Contains: []string{"401", "403"}},
			{Kind: agent.FailureQuota, Contains: []string{"429", "usage limit", "rate limit"}},
		},
	})
	newEngine := rt.Session.Engine
	rt.Session.Engine = func(inv registry.Invocation) engine.Engine {
		e := newEngine(inv).(*acp.Engine)
		e.UpdateFails, e.Guard = codexFails, apart
		return e
	}
	rt.Session.Options.AppendSystemPrompt = true
	rt.Session.Command = withCodexConfig(rt.Session.Command)
	rt.NamedOnly = true // it has no runs
	rt.TestedVersion = "2.6.0"
	rt.Provider = "openai"
	rt.SessionUUIDs = true
	rt.PrivateTemp = true
	rt.Protected = []string{".codex"}
	return rt
}

// codexFails reports whether the member _meta of an update says that Codex has failed. The turn
// ends as a success then, with a text that says why.
func codexFails(raw json.RawMessage) bool {
	var meta struct {
		Codex struct {
			ThreadStatus struct {
				Type string `json:"type"`
			} `json:"threadStatus"`
		} `json:"codex"`
	}
	return json.Unmarshal(raw, &meta) == nil && meta.Codex.ThreadStatus.Type == "systemError"
}

// apart returns a message in pieces of which the first is not a command: codex-acp searches
// no other for one, and ignores blanks.
func apart(text string) []string {
	if rest, ok := strings.CutPrefix(text, "\n"); ok {
		return []string{"\n", rest}
	}
	return []string{text}
}

// codexMode names the variable with its mode, a sandbox and when it asks.
const codexMode = "INITIAL_AGENT_MODE"

// codexConfig names the variable with settings of Codex, a JSON object.
const codexConfig = "CODEX_CONFIG"

// withCodexConfig adds settings to those that the caller has in the same variable.
func withCodexConfig(command func(registry.Invocation) (agent.Command, error)) func(registry.Invocation) (agent.Command, error) {
	return func(inv registry.Invocation) (agent.Command, error) {
		c, err := command(inv)
		if err != nil {
			return c, err
		}
		config := map[string]any{}
		if text := inv.Getenv(codexConfig); text != "" {
			if err := json.Unmarshal([]byte(text), &config); err != nil || config == nil {
				return c, agent.Usagef("%s is not a JSON object", codexConfig)
			}
		}
		config["analytics"] = map[string]any{"enabled": false}
		config["project_doc_max_bytes"] = 0 // AGENTS.md is in the prompt
		features := map[string]any{"plugins": false}
		if own, ok := config["features"].(map[string]any); ok {
			maps.Copy(own, features)
			features = own
		}
		config["features"] = features
		if inv.AppendSystemPrompt != "" {
			config["developer_instructions"] = inv.AppendSystemPrompt
		}
		text, err := json.Marshal(config)
		c.Env = append(slices.Clone(c.Env), codexConfig+"="+string(text))
		return c, err
	}
}
