package more

import (
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/registry/described"
)

// opencode describes opencode.
func opencode() registry.Runtime {
	rt := define("opencode", described.Definition{
		Name:        "opencode",
		Executables: []string{"opencode"},
		InstallURL:  "https://opencode.ai/docs",
		TokenEnv:    []string{"OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"},
		// Without a title it asks a model for one.
		Args: []described.Argument{
			{"run"}, {"--pure"}, {"--format=json"}, {"--title=bus-agent"}, {"--model={model}"},
			{"{effort}"}, {"--session={resume}"}, {"{continue}"}, {"{access}"},
		},
		ACP: &described.ACP{
			Args:    []described.Argument{{"acp"}, {"--pure"}},
			Access:  opencodeAccess("ask"),
			Efforts: efforts(),
			Models:  true,
		},
		Access:   opencodeAccess("deny"),
		Efforts:  efforts("--variant={}"),
		Continue: []described.Argument{{"--continue"}},
		Failures: []described.Failure{
			{Kind: agent.FailureAuthentication, Contains: []string{"ProviderAuthError", "401", "403"}},
			{Kind: agent.FailureQuota, Contains: []string{"429", "rate limit"}},
		},
		SilenceFails: true, // in a session it takes a message with a leading "/" for a command
		Env: map[string]*string{
			"OPENCODE_DISABLE_AUTOUPDATE":     new("1"),
			"OPENCODE_DISABLE_LSP_DOWNLOAD":   new("1"),
			"OPENCODE_DISABLE_PROJECT_CONFIG": new("1"), // agents, commands, plugins, MCP servers
		},
	})
	rt.TestedVersion = "1.18.33"
	rt.Decoder = func() formatters.Decoder { return dialect(new(opencodeDecoder).line) }
	rt.ReportsResult = true
	rt.PrivateTemp = true // for a copy of a library
	rt.Protected = []string{".opencode", "opencode.json", "opencode.jsonc"}
	rt.ReadingTools = []string{"glob", "grep", "list", "read", "skill", "todoread", "todowrite", "webfetch"}
	rt.Session.Options.Attachments = append(agent.ImageTypes(), agent.MediaPDF)
	attachBy(&rt, "--file=", append(agent.ImageTypes(), agent.MediaPDF)...)
	return rt
}

// opencodeAccess returns what each access permits. Other is what happens to the rest: a
// run that has to ask would end.
func opencodeAccess(other string) map[agent.Access]described.Setting {
	permit := func(permission string) described.Setting {
		return described.Setting{Env: map[string]*string{"OPENCODE_PERMISSION": new(strings.ReplaceAll(permission, "OTHER", other))}}
	}
	return map[agent.Access]described.Setting{
		agent.AccessRead:  permit(`{"*":"allow","edit":"OTHER","bash":"OTHER","task":"OTHER","external_directory":"OTHER"}`),
		agent.AccessWrite: permit(`{"*":"allow","bash":"OTHER","task":"OTHER","external_directory":"OTHER"}`),
		agent.AccessFull:  permit(`{"*":"allow"}`),
	}
}
