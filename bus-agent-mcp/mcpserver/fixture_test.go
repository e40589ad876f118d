//lint:file-ignore SA1019 hosts name their folders by roots until protocol 2026-07-28

package mcpserver

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/busdk/bus-agent/delegation"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/session/control"

	_ "github.com/busdk/bus-agent/backends/claude"
	_ "github.com/busdk/bus-agent/backends/codex"
)

// stubCodex is an agent that answers its prompt. The prompt "hang FILE" makes the file
// and never ends.
const stubCodex = `#!/bin/sh
read -r prompt
while read -r line; do :; done
echo '{"type":"thread.started","thread_id":"6f9619ff-8b86-4011-b42d-00c04fc964ff"}'
echo '{"type":"item.started","item":{"id":"i1","type":"command_execution","command":"ls","aggregated_output":"","status":"in_progress"}}'
case $prompt in
hang*) : > "${prompt#hang }"; exec sleep 3600 ;;
fail*) echo '{"type":"turn.failed","error":{"message":"no luck"}}'; exit 1 ;;
esac
echo '{"type":"item.completed","item":{"id":"i2","type":"agent_message","text":"You said: '"$prompt"'."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":7,"cached_input_tokens":0,"output_tokens":3}}'
`

// settings returns those of a server with the stub.
func settings(t *testing.T) delegation.Settings {
	t.Helper()
	bin, home := t.TempDir(), t.TempDir()
	for name, script := range map[string]string{"codex": stubCodex, "claude": stubClaude} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return delegation.Settings{
		Workdir: t.TempDir(), Store: control.NewStore(filepath.Join(home, "sessions")),
		Runner: &runner.Runner{
			Environ: []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + home, "TMPDIR=" + home, "CODEX_API_KEY=sk-stub", "BUS_AGENT=codex"},
			Warn:    func(line string) { t.Log(line) },
		},
	}
}

// connect serves a delegation to a client until the test ends.
func connect(t *testing.T, s delegation.Settings, o *mcp.ClientOptions, roots ...*mcp.Root) *mcp.ClientSession {
	t.Helper()
	clientSide, serverSide := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := (Server{Version: "1.2.3"}).serve(ctx, s, serverSide); err != nil && ctx.Err() == nil {
			t.Errorf("the server ends with %v", err)
		}
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o)
	client.AddRoots(roots...)
	session, err := client.Connect(t.Context(), clientSide, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		cancel()
		<-done
	})
	return session
}

// call calls a tool and decodes its structured result.
func call[T any](t *testing.T, session *mcp.ClientSession, name string, arguments map[string]any) (out T, text string, failed bool) {
	t.Helper()
	r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	raw, err := json.Marshal(r.StructuredContent)
	if err == nil && r.StructuredContent != nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatalf("%s returns %s: %v", name, raw, err)
	}
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text += c.Text
		}
	}
	return out, text, r.IsError
}

// stubClaude is an agent that asks for approval if the message has the word approve, and
// answers every other one.
const stubClaude = `#!/bin/sh
session='"session_id":"281e2dea-4e55-40f3-a8df-7cc6631ae1db"'
n=0
answer() {
	echo '{"type":"assistant","message":{"id":"b'$n'","role":"assistant","content":[{"type":"text","text":"'"$1"'"}]},'$session'}'
	echo '{"type":"result","subtype":"success","is_error":false,"result":"'"$1"'",'$session'}'
}
while read -r line; do
	case $line in
	*'"control_request"'*)
		id=${line#*\"request_id\":\"}
		echo '{"type":"control_response","response":{"subtype":"success","request_id":"'"${id%%\"*}"'","response":{}}}' ;;
	*'"behavior":"allow"'*) answer "Allowed." ;;
	*'"behavior":"deny"'*) answer "Denied." ;;
	*'"type":"user"'*)
		n=$((n + 1))
		echo '{"type":"system","subtype":"init",'$session',"model":"stub-1","tools":[]}'
		case $line in
		*approve*) echo '{"type":"control_request","request_id":"r'$n'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"make"},"tool_use_id":"t'$n'"}}' ;;
		*) answer "Answer $n." ;;
		esac ;;
	esac
done
`
