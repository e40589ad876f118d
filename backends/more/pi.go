package more

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
)

// pi describes pi.
func pi() registry.Runtime {
	rt := define("pi", described.Definition{
		Name:        "pi",
		Executables: []string{"pi"},
		InstallURL:  "https://github.com/earendil-works/pi",
		TokenEnv:    []string{"ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY"},
		// It takes a system prompt that is the name of a file for that file.
		Args: []described.Argument{
			{"--print"}, {"--mode", "json"}, {"--no-extensions"}, {"--no-prompt-templates"}, {"--no-skills"}, {"--no-context-files"},
			{"--model", "{model}"}, {"{effort}"}, {"--append-system-prompt", "\n{system-prompt}"}, {"--session", "{resume}"}, {"{continue}"}, {"{access}"},
		},
		// It has no approvals: an access is the list of its tools.
		Access: map[agent.Access]described.Setting{
			agent.AccessRead:  {Args: []described.Argument{{"--tools", "read,grep,find,ls"}}},
			agent.AccessWrite: {Args: []described.Argument{{"--tools", "read,grep,find,ls,edit,write"}}},
			agent.AccessFull:  {Args: []described.Argument{{"--tools", "read,grep,find,ls,edit,write,bash"}}},
		},
		Efforts:  efforts("--thinking", "{}"),
		Continue: []described.Argument{{"--continue"}},
		Failures: []described.Failure{
			{Kind: agent.FailureAuthentication, Contains: []string{"401 ", "401: ", "403 ", "403: ", "No API key found"}},
			{Kind: agent.FailureQuota, Contains: []string{"429 ", "429: "}},
		},
		// The first one also with --no-approve, and the others only with trust.
		Reads: []string{".pi/settings.json", ".pi/SYSTEM.md", ".pi/APPEND_SYSTEM.md", ".pi/mcp.json"},
		Env:   map[string]*string{"PI_OFFLINE": new("1"), "PI_TELEMETRY": new("0"), "NODE_DISABLE_COMPILE_CACHE": new("1")},
	})
	rt.Run.Command = withApproval(rt.Run.Command)
	limitTools(&rt, "--tools", "", "")
	rt.TestedVersion = "1.6.0"
	rt.Decoder = func() formatters.Decoder { return dialect(new(piDecoder).line) }
	rt.ReportsResult = true
	rt.SessionUUIDs = true
	rt.Protected = []string{".pi"}
	rt.ReadingTools = []string{"find", "grep", "ls", "read"}
	attachBy(&rt, "@", agent.ImageTypes()...)
	return rt
}

// withApproval makes pi use what a repository has in .pi only if it is trusted: settings,
// system prompts, MCP servers, extensions. Without either option the user's settings decide.
func withApproval(command func(registry.Invocation) (agent.Command, error)) func(registry.Invocation) (agent.Command, error) {
	return func(inv registry.Invocation) (agent.Command, error) {
		option := "--no-approve"
		if inv.TrustWorkspace {
			option = "--approve"
		}
		inv.Args = append([]string{option}, inv.Args...)
		return command(inv)
	}
}
