package cursor

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
	"github.com/busdk/bus-agent/session/acp"
)

func TestSessionCommand(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		request registry.Invocation
		want    []string
	}{
		"as it is":  {registry.Invocation{Prompt: "hello", Model: "m", Access: agent.AccessFull, Resume: "id"}, []string{"acp"}},
		"arguments": {registry.Invocation{Args: []string{"--endpoint", "https://example.com"}}, []string{"--endpoint", "https://example.com", "acp"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := sessionCommand(test.request)
			if err != nil || !slices.Equal(got.Args, test.want) || got.Stdin != "" || len(got.Env) != 0 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestSessionModes(t *testing.T) {
	t.Parallel()
	e := newEngine(registry.Invocation{}).(*acp.Engine)
	want := map[agent.Access]string{agent.AccessRead: "ask", agent.AccessWrite: "agent", agent.AccessFull: "agent"}
	if diff := cmp.Diff(want, e.Modes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, access := range agent.Accesses() {
		if got := e.Permits(access, "edit"); got != (access == agent.AccessFull) {
			t.Errorf("%s permits an edit: %v", access, got)
		}
	}
}
