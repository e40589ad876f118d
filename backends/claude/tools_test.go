package claude

import (
	"errors"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// An allowed tool of a server would come with all others of the server, and the name default
// with all tools.
func TestAllowedToolsThatWouldAddOthersAreRefused(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"mcp__notes__read": true, "default": true, "Read": false, "mcp_x": false} {
		if err := checkAs(registry.Invocation{AllowTools: []string{"Bash", name}}, false); errors.Is(err, agent.ErrUsage) != refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := checkAs(registry.Invocation{DenyTools: []string{"mcp__notes__read"}}, false); err != nil {
		t.Errorf("a denied tool of a server: %v", err)
	}
	inv := registry.Invocation{AllowTools: []string{"Read"}, MCPServers: []agent.MCPServer{{Name: "a", Command: "/a"}}}
	setup, err := prepared(t, repository(t, nil), inv)
	if err != nil || len(setup.Files)+len(setup.Args) > 0 {
		t.Errorf("with allowed tools the server is passed on by %q: %v", setup.Args, err)
	}
}
