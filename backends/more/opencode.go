package more

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
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
		// Also with OPENCODE_DISABLE_PROJECT_CONFIG.
		Reads: []string{
			".agents/skills/**/SKILL.md", ".claude/skills/**/SKILL.md", "opencode.json", "opencode.jsonc",
			".opencode/opencode.json", ".opencode/opencode.jsonc", ".opencode/agent/**/*.md", ".opencode/agents/**/*.md",
		},
		SilenceFails: true, // in a session it takes a message with a leading "/" for a command
		Env: map[string]*string{
			"OPENCODE_DISABLE_AUTOUPDATE":     new("1"),
			"OPENCODE_DISABLE_FFF":            new("1"), // it reads every file of the repository, which blocks at a FIFO
			"OPENCODE_DISABLE_LSP_DOWNLOAD":   new("1"),
			"OPENCODE_DISABLE_PROJECT_CONFIG": new("1"), // agents, commands, plugins, MCP servers
		},
	})
	for _, use := range []*registry.Use{&rt.Run, &rt.Session.Use} {
		use.Options.AllowTools, use.Options.DenyTools = true, true
		use.Check, use.Command = editsTogether(use.Check), withToolPermissions(use.Command)
	}
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

// opencodePermissions is the variable with what the access permits. A tool whose permission
// is denied is not offered.
const opencodePermissions = "OPENCODE_PERMISSION"

// opencodeEdits are the tools that have the permission edit; which of them opencode offers
// depends on the model.
var opencodeEdits = []string{"apply_patch", "edit", "write"}

// editsTogether refuses a list that allows only some of those tools, and then check.
func editsTogether(check func(registry.Invocation) error) func(registry.Invocation) error {
	return func(inv registry.Invocation) error {
		n := 0
		for _, name := range opencodeEdits {
			if slices.Contains(inv.AllowTools, name) {
				n++
			}
		}
		if n > 0 && n < len(opencodeEdits) {
			return agent.Usagef("opencode offers %s together; allow all of them or none", strings.Join(opencodeEdits, ", "))
		}
		return check(inv)
	}
}

// withToolPermissions denies the permissions of tools that the request leaves out, and makes
// a session ask for those of MCP servers. The others keep what the access gives them.
func withToolPermissions(command func(registry.Invocation) (agent.Command, error)) func(registry.Invocation) (agent.Command, error) {
	return func(inv registry.Invocation) (agent.Command, error) {
		c, err := command(inv)
		if err != nil || len(inv.AllowTools)+len(inv.DenyTools)+len(inv.MCPServers) == 0 {
			return c, err
		}
		c.Env = slices.Clone(c.Env)
		for i, entry := range c.Env {
			if text, ok := strings.CutPrefix(entry, opencodePermissions+"="); ok {
				permissions, err := toolPermissions(text, inv)
				if err != nil {
					return c, err
				}
				c.Env[i] = opencodePermissions + "=" + permissions
			}
		}
		return c, nil
	}
}

// only makes a permission of opencode match name and nothing else: a pattern that ends in
// " *" matches without that end too. See opencodeAccess.
func only(name string) string { return name + " *" }

// toolPermissions returns the permissions of an access, with those of MCP servers, limited to
// the tools of the request. JSON has those of all tools first, and of a server before its tools.
func toolPermissions(text string, inv registry.Invocation) (string, error) {
	var of map[string]string
	if err := json.Unmarshal([]byte(text), &of); err != nil {
		return "", err
	}
	permission := func(tool string) string {
		if slices.Contains(opencodeEdits, tool) {
			return only("edit")
		}
		return only(tool)
	}
	servers := inv.MCPServers
	if inv.Access == agent.AccessFull {
		servers = nil
	}
	limited := maps.Clone(of)
	for _, s := range servers {
		limited[s.Name+"_**"] = "ask"
	}
	for _, name := range inv.DenyTools {
		limited[permission(name)] = "deny"
	}
	if len(inv.AllowTools) > 0 {
		limited = map[string]string{"**": "deny"} // see opencodeAccess
		for _, tool := range append([]string{"doom_loop", "external_directory"}, inv.AllowTools...) {
			name := permission(tool)
			limited[name] = cmp.Or(of[name], of["*"])
			if ofServer := func(s agent.MCPServer) bool { return strings.HasPrefix(tool, s.Name+"_") }; slices.ContainsFunc(servers, ofServer) {
				limited[name] = "ask"
			}
		}
	}
	data, err := json.Marshal(limited)
	return string(data), err
}

// opencodeAccess returns what each access permits. Other is what happens to the rest: a
// run that has to ask would end.
//
// opencode adds these permissions to those of the user. A key that the user has too keeps its
// place, others come last, and the last one that fits a tool counts. So each key that must
// count is a pattern that a user does not write.
func opencodeAccess(other string) map[agent.Access]described.Setting {
	permit := func(permission string) described.Setting {
		return described.Setting{Env: map[string]*string{opencodePermissions: new(strings.ReplaceAll(permission, "OTHER", other))}}
	}
	return map[agent.Access]described.Setting{
		agent.AccessRead:  permit(`{"*":"allow","edit *":"OTHER","bash *":"OTHER","task *":"OTHER","external_directory *":"OTHER"}`),
		agent.AccessWrite: permit(`{"*":"allow","bash *":"OTHER","task *":"OTHER","external_directory *":"OTHER"}`),
		agent.AccessFull:  permit(`{"*":"allow"}`),
	}
}
