package described

import (
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/acp"
)

// TestDescribedAgentsEditOnlyWhenAsked: what their modes include is not known.
func TestDescribedAgentsEditOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	rt := described(t, `"output":"acp"`)
	e, ok := rt.Session.Engine(registry.Invocation{}).(*acp.Engine)
	if !ok {
		t.Fatal("the engine is of another protocol")
	}
	for _, access := range agent.Accesses() {
		for _, kind := range []string{"edit", "delete", "move", "execute", "other", ""} {
			if got := e.Permits(access, kind); got != (access == agent.AccessFull) {
				t.Errorf("%s permits %q: %v", access, kind, got)
			}
		}
	}
}
