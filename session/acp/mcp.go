package acp

import (
	"maps"
	"slices"

	"github.com/busdk/bus-agent/agent"
)

// mcpServer is an MCP server as the protocol has it. One with a command has no type.
type mcpServer struct {
	Type    string       `json:"type,omitempty"`
	Name    string       `json:"name"`
	Command string       `json:"command,omitempty"`
	Args    *[]string    `json:"args,omitempty"`
	Env     *[]mcpOption `json:"env,omitempty"`
	URL     string       `json:"url,omitempty"`
	Headers *[]mcpOption `json:"headers,omitempty"`
}

type mcpOption struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// mcpServers returns servers for an agent, which must support their transports.
func mcpServers(servers []agent.MCPServer, g greeting) ([]mcpServer, error) {
	all := []mcpServer{}
	for _, s := range servers {
		switch can := g.AgentCapabilities.MCP; {
		case s.Command != "":
			args := append([]string{}, s.Args...)
			all = append(all, mcpServer{Name: s.Name, Command: s.Command, Args: &args, Env: mcpOptions(s.Env)})
			continue
		case s.SSE && !can.SSE, !s.SSE && !can.HTTP:
			return nil, agent.Usagef("the agent takes no MCP servers of type %s, as %q is", s.Type(), s.Name)
		}
		all = append(all, mcpServer{Type: s.Type(), Name: s.Name, URL: s.URL, Headers: mcpOptions(s.Headers)})
	}
	return all, nil
}

func mcpOptions(values map[string]string) *[]mcpOption {
	options := make([]mcpOption, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		options = append(options, mcpOption{name, values[name]})
	}
	return &options
}
