package gemini

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// The list tools.core also permits every call of its tools, so it has no tool that the access
// does not permit.
func TestAllowedToolsPermitNothing(t *testing.T) {
	t.Parallel()
	servers := []agent.MCPServer{{Name: "notes", Command: "/notes"}}
	names := []string{"read_file", "write_file", "run_shell_command", "activate_skill", "mcp_notes_find", "mcp_mine_find"}
	for name, test := range map[string]struct {
		inv  registry.Invocation
		user string
		want []string
	}{
		"plan mode judges each call": {inv: registry.Invocation{Access: agent.AccessRead}, want: names},
		"full":                       {inv: registry.Invocation{Access: agent.AccessFull}, want: names},
		"write":                      {inv: registry.Invocation{Access: agent.AccessWrite}, want: []string{"read_file", "write_file", "mcp_notes_find"}},
		"allowed commands": {
			inv:  registry.Invocation{Access: agent.AccessWrite, AllowCommands: []string{"go test", "ls"}},
			want: []string{"read_file", "write_file", "run_shell_command(go test)", "run_shell_command(ls)", "mcp_notes_find"},
		},
		"a list of the user": {
			inv: registry.Invocation{Access: agent.AccessFull}, user: `["glob","read_file","run_shell_command(ls)"]`,
			want: []string{"read_file", "run_shell_command(ls)"},
		},
	} {
		s := settings{all: object{"mcpServers": json.RawMessage(`{"mine":{"command":"/mine"}}`)}}
		if test.user != "" {
			s.all["tools"] = json.RawMessage(`{"core":` + test.user + `}`)
		}
		test.inv.AllowTools, test.inv.MCPServers = names, servers
		if err := s.adapt(test.inv); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := s.toolList("core"); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: tools.core is %q, want %q: %v", name, got, test.want, err)
		}
		var started map[string]json.RawMessage
		if err := json.Unmarshal(s.all["mcpServers"], &started); err != nil || len(started) != 1 || started["notes"] == nil {
			t.Errorf("%s: mcpServers is %s", name, s.all["mcpServers"])
		}
	}
}

func TestDeniedToolsAreAddedToThoseOfTheUser(t *testing.T) {
	t.Parallel()
	s := settings{all: object{"tools": json.RawMessage(`{"exclude":["web_fetch","glob"]}`)}}
	if err := s.adapt(registry.Invocation{Access: agent.AccessFull, DenyTools: []string{"glob", "write_file"}}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.toolList("exclude"); err != nil || !slices.Equal(got, []string{"web_fetch", "glob", "write_file"}) {
		t.Errorf("tools.exclude is %q: %v", got, err)
	}
	for _, list := range []registry.Invocation{{AllowTools: []string{"glob"}}, {DenyTools: []string{"glob"}}} {
		list.Env = []string{homeEnv + "=/mine"}
		if check(list) == nil {
			t.Errorf("%+v is not refused with a home of the caller", list)
		}
	}
}
