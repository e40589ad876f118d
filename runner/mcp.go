package runner

import (
	"fmt"
	"slices"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/process"
)

// storedMCP gives a request without MCP servers those of the preferences.
func (p *prepared) storedMCP(l *lookup) error {
	stored, ok := l.preference(KeyMCP)
	switch {
	case !ok || len(p.req.MCPServers) > 0:
		return nil
	case !p.use.Options.MCPServers:
		p.warn(fmt.Sprintf("ignoring preference %s: %s cannot be given MCP servers", KeyMCP, p.selection.Runtime.Name))
		return nil
	}
	servers, err := agent.ParseMCPServers(stored)
	if err != nil {
		return SourceError(KeyMCP, err)
	}
	p.req.MCPServers = servers
	return nil
}

// settleMCP gives the invocation the MCP servers of the request, with the values of
// variables, and masks their secrets. What the repository controls is not run: PATH is
// that of the agent, and a command in the repository needs trust.
func (p *prepared) settleMCP(l *lookup) error {
	if err := p.storedMCP(l); err != nil {
		return p.wrap(agent.ErrUsage, err)
	}
	if len(p.req.MCPServers) == 0 {
		return nil
	}
	if err := agent.CheckMCPServers(p.req.MCPServers); err != nil {
		return p.wrap(agent.ErrUsage, err)
	}
	lookup := func(name string) (string, bool) { return agent.LookupEnv(p.inv.Environ, name) }
	for _, given := range p.req.MCPServers {
		s, err := given.Expanded(lookup)
		if err == nil && s.Command != "" {
			err = p.findServer(&s)
		}
		if err != nil {
			return p.wrap(agent.ErrUsage, err)
		}
		p.inv.MCPServers = append(p.inv.MCPServers, s)
	}
	p.secrets = NewMasker(slices.Concat(p.inv.Environ, agent.MCPSecrets(p.inv.MCPServers)))
	return nil
}

// findServer makes the command of s an absolute path.
func (p *prepared) findServer(s *agent.MCPServer) error {
	path, err := process.LookPath(s.Command, p.inv.Getenv("PATH"))
	if err == nil && p.inv.Untrusted(path) {
		err = fmt.Errorf("its command %s is in the repository; use another, or --trust-workspace", path)
	}
	if err != nil {
		return agent.Usagef("MCP server %q: %w; nothing was started", s.Name, err)
	}
	s.Command = path
	return nil
}
