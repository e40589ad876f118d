package codex

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// usesConfig reports whether the private home has a config.toml that counts: that of the
// user, or one with the MCP servers of the caller.
func usesConfig(inv registry.Invocation) bool {
	return inv.UserConfig == agent.UserConfigOn || len(inv.MCPServers) > 0
}

// check refuses MCP servers that Codex cannot use.
func check(inv registry.Invocation) error {
	if len(inv.MCPServers) == 0 {
		return nil
	}
	if _, ownHome := agent.LookupEnv(inv.Env, homeEnv); ownHome {
		return agent.Usagef("MCP servers cannot be added to a %s of your own; leave out one of them", homeEnv)
	}
	for _, s := range inv.MCPServers {
		if s.SSE {
			return agent.Usagef("MCP server %q: Codex knows no servers of type sse", s.Name)
		}
	}
	return nil
}

// servers returns the tables of the MCP servers in a config.toml. own is the rest of the
// file, which must not have servers of the same names. approve lets the model call their
// tools without an approval: a run has no user who could be asked, and in a session the
// engine cannot ask.
func servers(list []agent.MCPServer, own string, approve bool) (string, error) {
	var b strings.Builder
	for _, key := range tomlKeys(own) {
		if len(key) > 1 && key[0] == "mcp_servers" && slices.ContainsFunc(list, func(s agent.MCPServer) bool { return s.Name == key[1] }) {
			return "", agent.Usagef("your %s has an MCP server %q too; give one of them another name", configName, key[1])
		}
	}
	for _, s := range list {
		table := "mcp_servers." + encode(s.Name)
		fmt.Fprintf(&b, "\n[%s]\n", table)
		if s.Command != "" {
			fmt.Fprintf(&b, "command = %s\nargs = %s\n", encode(s.Command), encode(append([]string{}, s.Args...)))
		} else {
			fmt.Fprintf(&b, "url = %s\n", encode(s.URL))
		}
		if approve {
			b.WriteString("default_tools_approval_mode = \"approve\"\n")
		}
		values, name := s.Env, "env"
		if s.URL != "" {
			values, name = s.Headers, "http_headers"
		}
		if len(values) > 0 {
			fmt.Fprintf(&b, "[%s.%s]\n", table, name)
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			fmt.Fprintf(&b, "%s = %s\n", encode(key), encode(values[key]))
		}
	}
	return b.String(), nil
}
