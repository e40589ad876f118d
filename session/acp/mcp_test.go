package acp

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
)

func TestServersOfTheProtocol(t *testing.T) {
	t.Parallel()
	var can greeting
	can.AgentCapabilities.MCP.HTTP = true
	servers, err := mcpServers([]agent.MCPServer{
		{Name: "a", Command: "/bin/a", Env: map[string]string{"L": "2", "K": "1"}},
		{Name: "b", URL: "https://example.com", Headers: map[string]string{"X": "y"}},
	}, can)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(servers)
	const want = `[{"name":"a","command":"/bin/a","args":[],"env":[{"name":"K","value":"1"},{"name":"L","value":"2"}]},` +
		`{"type":"http","name":"b","url":"https://example.com","headers":[{"name":"X","value":"y"}]}]`
	if diff := cmp.Diff(want, string(text)); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, s := range []agent.MCPServer{{Name: "a", URL: "https://example.com"}, {Name: "a", URL: "https://example.com", SSE: true}} {
		if _, err := mcpServers([]agent.MCPServer{s}, greeting{}); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%s: %v", s.Type(), err)
		}
	}
	if none, err := mcpServers(nil, greeting{}); err != nil || none == nil {
		t.Errorf("no servers: %v, %v; the protocol needs a list", none, err)
	}
}
