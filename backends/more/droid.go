package more

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
)

// droid describes Droid, of Factory.
func droid() registry.Runtime {
	rt := define("droid", described.Definition{
		Name:        "Droid",
		Executables: []string{"droid"},
		InstallURL:  "https://docs.factory.ai/cli/getting-started/quickstart",
		TokenEnv:    []string{"FACTORY_API_KEY"},
		Args: []described.Argument{
			{"exec"}, {"--output-format=stream-json"}, {"--model={model}"}, {"{effort}"}, {"--append-system-prompt={system-prompt}"},
			{"--session-id={resume}"}, {"{access}"},
		},
		ACP: &described.ACP{
			Args: []described.Argument{{"exec"}, {"--output-format=acp"}},
			// In mode auto-low it edits files anywhere, and runs commands that the model
			// calls harmless.
			Access: map[agent.Access]described.Setting{
				agent.AccessRead:  {Mode: "normal"},
				agent.AccessWrite: {Mode: "normal", AcceptEdits: true},
				agent.AccessFull:  {Mode: "auto-high"},
			},
			Efforts: efforts(),
			Models:  true,
		},
		// Otherwise both have commands that the model calls harmless.
		Access: map[agent.Access]described.Setting{
			agent.AccessRead:  {Args: []described.Argument{{"--only-tools=Read,LS,Grep,Glob"}}},
			agent.AccessWrite: {Args: []described.Argument{{"--only-tools=Read,LS,Grep,Glob,Edit,Create,ApplyPatch"}, {"--auto=low"}}},
			agent.AccessFull:  {Args: []described.Argument{{"--skip-permissions-unsafe"}}},
		},
		Efforts:       efforts("--reasoning-effort={}"),
		SlashCommands: true,
		Failures: []described.Failure{
			{Kind: agent.FailureAuthentication, Contains: []string{"401 ", "403 ", "Authentication failed"}},
			{Kind: agent.FailureQuota, Contains: []string{"429 "}},
		},
		Instructions: "native", // no option against it
		Executed: []string{
			".factory/config.json", ".factory/hooks", ".factory/hooks.json", ".factory/mcp.json", ".factory/plugins",
			".factory/settings.json", ".factory/settings.local.json",
		},
		Reads: []string{
			"Agents.md", "agents.md", "CLAUDE.md", "Claude.md", "DESIGN.md", "Design.md", "design.md",
			".agent/skills/*/SKILL.md", ".agents/skills/*/SKILL.md", ".factory/skills/*/SKILL.md",
			".factory/commands/*.md", ".factory/droids/*.md", ".factory/output-styles/*.md",
		},
		Env: map[string]*string{"FACTORY_DROID_AUTO_UPDATE_ENABLED": new("false")},
	})
	rt.Session.Options.MCPServers = false // the model would have to search for their tools
	limitTools(&rt, "--only-tools", "--only-tools", "--remove-tools")
	rt.TestedVersion = "0.215.0"
	rt.Session.Options.Attachments = nil // it accepts images, and its model gets none
	rt.Provider = "factory"
	rt.Decoder = func() formatters.Decoder { return dialect(new(droidDecoder).line) }
	rt.ReportsResult = true
	rt.SessionUUIDs = true
	rt.Protected = []string{".factory"}
	rt.ReadingTools = []string{"Glob", "Grep", "LS", "Read", "Skill", "ToolSearch"}
	return rt
}
