package codex

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

func TestServersInConfig(t *testing.T) {
	t.Parallel()
	list := []agent.MCPServer{
		{Name: "a", Command: "/bin/a", Args: []string{`"x"`}, Env: map[string]string{"K": "v\t<"}},
		{Name: "b", URL: "https://example.com", Headers: map[string]string{"X-Key": "k"}},
	}
	got, err := servers(list, "[mcp_servers.other]\ncommand = \"x\"\n", true)
	const want = `
[mcp_servers."a"]
command = "/bin/a"
args = ["\"x\""]
default_tools_approval_mode = "approve"
[mcp_servers."a".env]
"K" = "v\t<"

[mcp_servers."b"]
url = "https://example.com"
default_tools_approval_mode = "approve"
[mcp_servers."b".http_headers]
"X-Key" = "k"
`
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, own := range []string{"[mcp_servers.a]\ncommand = \"x\"\n", "mcp_servers.\"a\".url = \"x\"\n"} {
		if _, err := servers(list, own, false); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("with a server of the same name in %q: %v", own, err)
		}
	}
}

func TestServersThatCodexCannotUseAreRefused(t *testing.T) {
	t.Parallel()
	for what, inv := range map[string]registry.Invocation{
		"sse":                  {MCPServers: []agent.MCPServer{{Name: "a", URL: "https://example.com", SSE: true}}},
		"a home of the caller": {MCPServers: []agent.MCPServer{{Name: "a", Command: "/a"}}, Env: []string{homeEnv + "=/mine"}},
	} {
		if err := check(inv); !errors.Is(err, agent.ErrUsage) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// The values of MCP servers are in a file of the private home, for the user alone, and never
// in an argument.
func TestServersAreInTheHome(t *testing.T) {
	t.Parallel()
	p := newProject(t, nil)
	inv := registry.Invocation{Access: agent.AccessWrite, MCPServers: []agent.MCPServer{{Name: "a", Command: "/a", Env: map[string]string{"KEY": "hidden"}}}}
	setup, home, end := p.run(inv)
	file := filepath.Join(home, configName)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%s: %v, %v", file, info, err)
	}
	if text, err := os.ReadFile(file); err != nil || strings.Count(string(text), "hidden") != 1 {
		t.Errorf("%v\n%s", err, text)
	}
	if text := strings.Join(setup.Args, " "); strings.Contains(text, "hidden") {
		t.Errorf("a value is in the arguments %q", setup.Args)
	}
	end()
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the run: %v", err)
	}
}
