//go:build acceptance

package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/busdk/bus-agent/agent"
	_ "github.com/busdk/bus-agent/backends/more" // for its sessions
	"github.com/busdk/bus-agent/modeltest"
	"github.com/busdk/bus-agent/session"
)

// newOpencode returns a fixture for opencode whose user's configuration has permission.
func newOpencode(t *testing.T, script modeltest.Script, permission string) *fixture {
	t.Helper()
	w := newCodex(t, script, nil)
	w.agent, w.modelID, w.path = "opencode", "fake/scripted", filepath.Dir(opencode)
	w.keptInHome = []string{".cache", ".config", ".local", ".npm"}
	w.env = []string{"OPENCODE_DISABLE_MODELS_FETCH=1", "npm_config_registry=" + w.model.URL()}
	writeFiles(t, w.home, map[string]string{".config/opencode/opencode.json": fmt.Sprintf(`{"autoupdate":false,"share":"disabled",`+
		`"enabled_providers":["fake"],"provider":{"fake":{"npm":"@ai-sdk/openai-compatible","name":"fake",`+
		`"options":{"baseURL":%q,"apiKey":"sk-acceptance"},"models":{"scripted":{"name":"scripted","tool_call":true}}}},`+
		`"permission":%s}`, w.model.OpenAIURL(), permission)})
	return w
}

// opencode adds the permissions of the access to those of the user, whose keys keep their
// places, and the last one that fits counts.
func TestOpencodeAccessOverridesTheUsersPermissions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		permission string
		args       []string
		tool       string
		runs       bool
	}{
		"read, edit":      {`{"edit":"ask","bash":"ask"}`, []string{"--access", "read"}, "write", false},
		"read, bash":      {`{"edit":"ask","bash":"ask"}`, []string{"--access", "read"}, "bash", false},
		"write, edit":     {`{"edit":"deny","bash":"allow"}`, []string{"--access", "write"}, "write", true},
		"full, bash":      {`{"edit":"ask","bash":"ask"}`, []string{"--access", "full"}, "bash", true},
		"a denied tool":   {`{"bash":"allow"}`, []string{"--access", "full", "--deny-tool", "bash"}, "bash", false},
		"an allowed tool": {`{"bash":"ask"}`, []string{"--access", "full", "--allow-tool", "bash"}, "bash", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var file string
			w := newOpencode(t, func(r *modeltest.Request) modeltest.Reply {
				if len(r.ToolResults()) > 0 {
					return answer("done")
				}
				arguments := map[string]string{"filePath": file, "content": "x"}
				if c.tool == "bash" {
					arguments = map[string]string{"command": "touch made", "description": "try"}
				}
				text, _ := json.Marshal(arguments)
				return modeltest.Reply{modeltest.ToolCall{Name: c.tool, Arguments: string(text)}}
			}, c.permission)
			file = filepath.Join(w.repo, "made")
			w.mayAdd = []string{"made"}
			r, o := w.run("hello", c.args...)
			w.wantAnswer("done", r, o)
			if _, err := os.Lstat(file); err == nil != c.runs || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the tool ran: %t, want %t\n%v", err == nil, c.runs, o)
			}
		})
	}
}

// notesServer is an MCP server on standard streams, whose tool creates the file in its
// argument.
const notesServer = `const answers = {
	initialize: (p) => ({protocolVersion: p.protocolVersion, capabilities: {tools: {}}, serverInfo: {name: "notes", version: "1"}}),
	"tools/list": () => ({tools: [{name: "add", description: "add", inputSchema: {type: "object", properties: {}}}]}),
	"tools/call": () => { require("fs").writeFileSync(process.argv[2], ""); return {content: [{type: "text", text: "added"}]}; },
};
require("readline").createInterface({input: process.stdin}).on("line", (line) => {
	const {id, method, params} = JSON.parse(line);
	if (id !== undefined) console.log(JSON.stringify({jsonrpc: "2.0", id, result: (answers[method] ?? (() => ({})))(params)}));
});
`

// A session requests an approval for the tools of its MCP servers, whatever the user permits.
func TestOpencodeSessionAsksForToolsOfServers(t *testing.T) {
	t.Parallel()
	for access, asks := range map[agent.Access]int{agent.AccessRead: 1, agent.AccessWrite: 1, agent.AccessFull: 0} {
		t.Run(string(access), func(t *testing.T) {
			t.Parallel()
			w := newOpencode(t, callOnce(modeltest.ToolCall{Name: "notes_add", Arguments: "{}"}), `{"notes_*":"allow"}`)
			dir := t.TempDir()
			writeFiles(t, dir, map[string]string{"notes.js": notesServer})
			var asked int
			d := w.startSession(session.Options{Approve: func(context.Context, session.Approval) session.Decision {
				asked++
				return session.Accept
			}}, func(r *agent.Request) {
				r.Access = access
				r.MCPServers = []agent.MCPServer{{Name: "notes", Command: node, Args: []string{filepath.Join(dir, "notes.js"), filepath.Join(dir, "made")}}}
			})
			d.sendWant("hello", "done")
			d.stop()
			if _, err := os.Lstat(filepath.Join(dir, "made")); err != nil || asked != asks {
				t.Errorf("%d approval requests, want %d: %v", asked, asks, err)
			}
		})
	}
}
