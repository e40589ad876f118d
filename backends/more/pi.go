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
		InstallURL:  "https://github.com/badlogic/pi-mono",
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
			{Kind: agent.FailureAuthentication, Contains: []string{"401 ", "403 ", "No API key found"}},
			{Kind: agent.FailureQuota, Contains: []string{"429 "}},
		},
		Executed: []string{".pi/settings.json"},
		Env:      map[string]*string{"PI_OFFLINE": new("1"), "PI_TELEMETRY": new("0")},
	})
	limitTools(&rt, "--tools", "", "")
	rt.TestedVersion = "0.73.1"
	rt.Decoder = func() formatters.Decoder { return dialect(new(piDecoder).line) }
	rt.ReportsResult = true
	rt.SessionUUIDs = true
	rt.Protected = []string{".pi"}
	rt.ReadingTools = []string{"find", "grep", "ls", "read"}
	attachBy(&rt, "@", agent.ImageTypes()...)
	return rt
}
