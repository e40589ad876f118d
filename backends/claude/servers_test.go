package claude

import (
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// The values of MCP servers are in a file and never in an argument, and the additional
// system prompt is in one of them once, also when a session is resumed.
func TestServersAndSystemPromptAreFiles(t *testing.T) {
	t.Parallel()
	workdir := repository(t, map[string]string{"AGENTS.md": "be quick\n"})
	servers := []agent.MCPServer{{Name: "a", URL: "https://example.com", Headers: map[string]string{"X-Key": "hidden"}}}
	for _, resume := range []string{"", "0a64d4a6-5e4a-4ad0-a6a0-3d3ef3a8a5c1"} {
		setup, err := prepared(t, workdir, registry.Invocation{MCPServers: servers, AppendSystemPrompt: "be brief", Resume: resume})
		if err != nil {
			t.Fatal(err)
		}
		if len(setup.Files) != 2 || strings.Count(string(setup.Files[0]), "be brief") != 1 || string(setup.Files[1]) != string(agent.MCPConfig(servers)) {
			t.Errorf("resume %q: the files are %q", resume, setup.Files)
		}
		for _, want := range []string{"/dev/fd/3", "--mcp-config=/dev/fd/4"} {
			if !slices.Contains(setup.Args, want) {
				t.Errorf("resume %q: the arguments %q lack %s", resume, setup.Args, want)
			}
		}
		if text := strings.Join(setup.Args, " "); strings.Contains(text, "hidden") || strings.Contains(text, "be brief") {
			t.Errorf("resume %q: a value is in the arguments %q", resume, setup.Args)
		}
	}
}
