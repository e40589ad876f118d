package mcpserver

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/busdk/bus-agent/delegation"
	"github.com/busdk/bus-agent/runner"

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
	if err := os.WriteFile(filepath.Join(bin, "codex"), []byte(stubCodex), 0o755); err != nil {
		t.Fatal(err)
	}
	return delegation.Settings{
		Workdir: t.TempDir(),
		Runner: &runner.Runner{
			Environ: []string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + home, "TMPDIR=" + home, "CODEX_API_KEY=sk-stub"},
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

// awaitFile waits until a file exists.
func awaitFile(name string) {
	for awaiting := true; awaiting; time.Sleep(time.Millisecond) {
		_, err := os.Stat(name)
		awaiting = err != nil
	}
}
