package more

import (
	"encoding/json"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
	"github.com/busdk/bus-agent/session/acp"
)

// codexACP describes the adapter of Codex for the Agent Client Protocol.
func codexACP() registry.Runtime {
	rt := define("codex-acp", described.Definition{
		Name:        "codex-acp",
		Executables: []string{"codex-acp"},
		InstallURL:  "https://www.npmjs.com/package/@zed-industries/codex-acp",
		TokenEnv:    []string{"CODEX_API_KEY", "OPENAI_API_KEY"},
		Output:      "acp",
		Args: []described.Argument{
			{"-c", "analytics.enabled=false"}, {"-c", "project_doc_max_bytes=0"}, {"-c", "features.plugins=false"},
			{"-c", "model={model}"}, {"{effort}"}, {"{access}"},
		},
		// A mode of the protocol would make it trust the repository, in the user's
		// configuration.
		Access: map[agent.Access]described.Setting{
			agent.AccessRead:  {Args: codexSandbox("read-only", "on-request")},
			agent.AccessWrite: {Args: codexSandbox("workspace-write", "on-request"), AcceptEdits: true},
			agent.AccessFull:  {Args: codexSandbox("danger-full-access", "never")},
		},
		SlashCommands: true,
		// It uses them if the user's configuration trusts the repository.
		Executed: []string{".codex/config.toml", ".codex/hooks.json"},
		Efforts:  efforts("-c", "model_reasoning_effort={}"),
		Failures: []described.Failure{
			{Kind: agent.FailureAuthentication, Contains: []string{"401", "403"}},
			{Kind: agent.FailureQuota, Contains: []string{"429", "usage limit", "rate limit"}},
		},
	})
	rt.Session.Options.AppendSystemPrompt = true
	rt.Session.Command = withDeveloperText(rt.Session.Command)
	rt.NamedOnly = true // it has no runs
	rt.TestedVersion = "0.16.0"
	rt.VersionInput = acp.Greeting
	rt.Provider = "openai"
	rt.SessionUUIDs = true
	rt.PrivateTemp = true
	rt.Protected = []string{".codex"}
	return rt
}

// withDeveloperText adds the additional system prompt as a string of TOML. As plain text it
// could be a value of another type.
func withDeveloperText(command func(registry.Invocation) (agent.Command, error)) func(registry.Invocation) (agent.Command, error) {
	return func(inv registry.Invocation) (agent.Command, error) {
		if inv.AppendSystemPrompt != "" {
			var text strings.Builder
			e := json.NewEncoder(&text)
			e.SetEscapeHTML(false) // longer
			if err := e.Encode(inv.AppendSystemPrompt); err != nil {
				return agent.Command{}, err
			}
			inv.Args = append([]string{"-c", "developer_instructions=" + strings.TrimSpace(text.String())}, inv.Args...)
		}
		return command(inv)
	}
}

// codexSandbox returns the arguments for a sandbox and for when it asks.
func codexSandbox(mode, approvals string) []described.Argument {
	return []described.Argument{{"-c", "sandbox_mode=" + mode}, {"-c", "approval_policy=" + approvals}}
}
