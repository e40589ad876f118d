package more

import (
	"bytes"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
	"github.com/busdk/bus-agent/session/acp"
	"github.com/busdk/bus-agent/session/engine"
)

// copilot describes GitHub Copilot CLI.
func copilot() registry.Runtime {
	rt := define("copilot", described.Definition{
		Name:        "GitHub Copilot CLI",
		Executables: []string{"copilot"},
		InstallURL:  "https://docs.github.com/copilot/how-tos/copilot-cli",
		TokenEnv:    []string{"COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN"},
		Args: []described.Argument{
			{"--output-format=json"}, {"--stream=off"}, {"--no-color"}, {"--no-auto-update"}, {"--no-ask-user"}, {"--no-remote"},
			{"--disable-builtin-mcps"}, {"--no-custom-instructions"}, {"--model={model}"}, {"--available-tools={allow-tools}"}, {"--excluded-tools={deny-tools}"}, {"{effort}"}, {"--resume={resume}"}, {"{continue}"}, {"{access}"},
		},
		ACP: &described.ACP{Args: []described.Argument{
			{"--acp"}, {"--no-auto-update"}, {"--no-remote"}, {"--disable-builtin-mcps"}, {"--no-custom-instructions"}, {"--model={model}"}, {"--available-tools={allow-tools}"}, {"--excluded-tools={deny-tools}"}, {"{effort}"}, {"{access}"},
		}},
		// A run refuses what it would have to ask for.
		Access: map[agent.Access]described.Setting{
			agent.AccessRead:  {Args: []described.Argument{{"--deny-tool=write"}}},
			agent.AccessWrite: {Args: []described.Argument{{"--allow-tool=write"}}, AcceptEdits: true},
			agent.AccessFull:  {Args: []described.Argument{{"--allow-all"}}},
		},
		Efforts:       efforts("--reasoning-effort={}"),
		Continue:      []described.Argument{{"--continue"}},
		SlashCommands: true,
		Failures: []described.Failure{
			{Kind: agent.FailureAuthentication, Contains: []string{"No authentication information found", "Authentication failed", "(HTTP 401)", "(HTTP 403)"}},
			{Kind: agent.FailureQuota, Contains: []string{"429 ", "(HTTP 429)", "quota exceeded"}},
		},
		// In sessions it reads these despite its option.
		Reads: []string{
			"AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md", ".github/instructions", ".github/instructions/**/*.md",
			".agents/skills/**/SKILL.md", ".claude/skills/**/SKILL.md", ".github/skills/**/SKILL.md",
		},
		Executed: []string{".github/copilot/settings.json", ".github/copilot/settings.local.json", ".github/hooks", ".github/extensions", ".mcp.json", ".vscode/mcp.json"},
	})
	rt.Session.Engine = withoutToolNotice(rt.Session.Engine)
	rt.Session.Options.MCPServers = false // it does not offer their tools
	rt.TestedVersion = "1.0.102"
	rt.Provider = "github"
	rt.Decoder = func() formatters.Decoder { return dialect(new(copilotDecoder).line) }
	rt.ReportsResult = true
	rt.SessionUUIDs = true
	rt.PrivateTemp = true // for the cache of Node.js
	rt.Protected = []string{".github/copilot", ".github/hooks", ".github/extensions", ".mcp.json"}
	rt.ReadingTools = []string{"fetch_copilot_cli_documentation", "glob", "grep", "list_agents", "list_bash", "read_agent", "read_bash", "skill", "view"}
	rt.Run.Check = noSlash(rt.Run.Check)
	rt.QuietStderr = func(line []byte) bool { return bytes.HasPrefix(line, []byte("Package extraction took ")) }
	attachBy(&rt, "--attachment=", agent.ImageTypes()...)
	return rt
}

// withoutToolNotice leaves out the text with which a session begins that has a list of tools
// (1.0.102).
func withoutToolNotice(newEngine func(registry.Invocation) engine.Engine) func(registry.Invocation) engine.Engine {
	return func(inv registry.Invocation) engine.Engine {
		e := newEngine(inv)
		if protocol, ok := e.(*acp.Engine); ok && len(inv.AllowTools)+len(inv.DenyTools) > 0 {
			protocol.Notices = append(protocol.Notices, "Info: Disabled tools: ")
		}
		return e
	}
}

// noSlash refuses a prompt that Copilot takes for one of its commands, and then check.
func noSlash(check func(registry.Invocation) error) func(registry.Invocation) error {
	return func(inv registry.Invocation) error {
		if strings.HasPrefix(strings.TrimSpace(inv.Prompt), "/") {
			return agent.Usagef("it takes a prompt that begins with \"/\" for one of its commands, even after a line break; begin it with a word")
		}
		return check(inv)
	}
}
