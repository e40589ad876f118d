//lint:file-ignore SA1019 hosts name their folders by roots until protocol 2026-07-28

package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/delegation"
	"github.com/busdk/bus-agent/internal/testwait"
)

func TestToolsAreStrictAndAnnotated(t *testing.T) {
	t.Parallel()
	for _, access := range []agent.Access{"", agent.AccessWrite} {
		s := settings(t)
		s.Access = access
		session := connect(t, s, nil)
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			schema, _ := json.Marshal(tool.InputSchema)
			if !strings.Contains(string(schema), `"additionalProperties":false`) {
				t.Errorf("%s takes any member: %s", tool.Name, schema)
			}
			// The TypeScript SDK takes no schema that is a boolean.
			output, _ := json.Marshal(tool.OutputSchema)
			if text := string(schema) + string(output); strings.Contains(strings.ReplaceAll(text, `"additionalProperties":false`, ""), `":true`) || strings.Contains(string(schema), `"null"`) {
				t.Errorf("%s has a schema that not all clients take: %s", tool.Name, text)
			}
			if tool.OutputSchema == nil || tool.Description == "" || tool.Annotations == nil {
				t.Errorf("%s is not described", tool.Name)
			}
			if acts := tool.Name == "run_agent"; acts && tool.Annotations.ReadOnlyHint == (access == agent.AccessWrite) {
				t.Errorf("with access %q, %s has the annotations %+v", access, tool.Name, tool.Annotations)
			}
		}
		if info := session.InitializeResult(); info.ServerInfo.Version != "1.2.3" || info.Instructions == "" {
			t.Errorf("%+v", info)
		}
	}
}

func TestListRuntimes(t *testing.T) {
	t.Parallel()
	session := connect(t, settings(t), nil)
	o, text, failed := call[delegation.Overview](t, session, "list_runtimes", nil)
	if failed || len(o.Runtimes) != 2 || o.Default != "codex" || o.Access != agent.AccessRead || o.Depth != 1 ||
		!slices.Equal(o.Runtimes[1].Access, []agent.Access{agent.AccessRead}) {
		t.Errorf("%+v", o)
	}
	if !strings.Contains(text, "codex (Codex CLI), the default") {
		t.Errorf("as text: %q", text)
	}
}

func TestRunAgent(t *testing.T) {
	t.Parallel()
	session := connect(t, settings(t), nil)
	out, text, failed := call[runOutput](t, session, "run_agent", map[string]any{"prompt": "hello", "runtime": "codex"})
	if failed || out.Text != "You said: hello." || out.Usage == nil || out.Usage.Input != 7 || out.Kind != "" {
		t.Errorf("%+v", out)
	}
	if !strings.HasPrefix(text, "You said: hello.") || !strings.Contains(text, "session_id "+out.SessionID) {
		t.Errorf("as text: %q", text)
	}
}

func TestFailuresAreToolErrors(t *testing.T) {
	t.Parallel()
	session := connect(t, settings(t), nil)
	for name, c := range map[string]struct {
		arguments  map[string]any
		kind, text string
	}{
		"the agent fails":   {map[string]any{"prompt": "fail"}, "agent", "no luck"},
		"unknown runtime":   {map[string]any{"prompt": "x", "runtime": "bogus"}, "usage", "bogus"},
		"too much access":   {map[string]any{"prompt": "x", "access": "write"}, "usage", "access write is more than the read"},
		"outside":           {map[string]any{"prompt": "x", "workdir": "/"}, "usage", "outside"},
		"not an access":     {map[string]any{"prompt": "x", "access": "all"}, "", "access"},
		"not a member":      {map[string]any{"prompt": "x", "args": []string{"--yolo"}}, "", "args"},
		"without a prompt":  {map[string]any{}, "", "prompt"},
		"not a time":        {map[string]any{"prompt": "x", "timeout_seconds": 0}, "", "timeout_seconds"},
		"too long a time":   {map[string]any{"prompt": "x", "timeout_seconds": 99_999_999_999}, "", "timeout_seconds"},
		"an invalid schema": {map[string]any{"prompt": "x", "schema": map[string]any{"type": 7}}, "usage", "schema"},
	} {
		out, text, failed := call[runOutput](t, session, "run_agent", c.arguments)
		if !failed || out.Kind != c.kind || !strings.Contains(text, c.text) || strings.Contains(out.Error, "\n") {
			t.Errorf("%s: %v %+v %q", name, failed, out.failure, text)
		}
	}
}

func TestProgressIsReported(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var messages []string
	notified := make(chan bool, 16)
	session := connect(t, settings(t), &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		defer func() { notified <- true }()
		mu.Lock()
		defer mu.Unlock()
		messages = append(messages, r.Params.Message)
		if r.Params.Progress != float64(len(messages)) || r.Params.ProgressToken != "p1" {
			t.Errorf("progress %v of %v", r.Params.Progress, r.Params.ProgressToken)
		}
	}})
	params := &mcp.CallToolParams{Name: "run_agent", Arguments: map[string]any{"prompt": "hello"}}
	params.SetProgressToken("p1")
	if _, err := session.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the client can call the handler after the answer
		<-notified
	}
	mu.Lock()
	defer mu.Unlock()
	if len(messages) != 2 || !strings.HasSuffix(messages[0], " ls") || messages[1] != "You said: hello." {
		t.Errorf("progress %q", messages)
	}
}

func TestCancelEndsTheAgent(t *testing.T) {
	t.Parallel()
	s := settings(t)
	s.Concurrent = 1
	session := connect(t, s, nil)
	running := filepath.Join(t.TempDir(), "running")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "run_agent", Arguments: map[string]any{"prompt": "hang " + running}})
		ended <- err
	}()
	testwait.Exists(running)
	if _, text, _ := call[runOutput](t, session, "run_agent", map[string]any{"prompt": "x"}); !strings.HasPrefix(text, "limit: ") {
		t.Fatalf("while an agent runs: %q", text)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("the canceled call returns a result")
	}
	// The slot of the agent is free when all its processes have ended.
	for {
		if _, text, _ := call[runOutput](t, session, "run_agent", map[string]any{"prompt": "x"}); !strings.HasPrefix(text, "limit: 1 agents") {
			break
		}
	}
}

// A client that goes away during a call ends the agent of the call and the server, by the
// end of standard input alone or by a signal.
func TestEndOfTheClientEndsTheServer(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(stdin io.Closer, cancel func()){
		"end of input": func(stdin io.Closer, _ func()) { _ = stdin.Close() },
		"signal":       func(_ io.Closer, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fromClient, stdin := io.Pipe()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- Server{}.Serve(ctx, settings(t), fromClient, io.Discard) }()
			running := filepath.Join(t.TempDir(), "running")
			for _, message := range []string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`,
				`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
				`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_agent","arguments":{"prompt":"hang ` + running + `"}}}`,
			} {
				if _, err := io.WriteString(stdin, message+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			testwait.Exists(running)
			end(stdin, cancel)
			if err := <-ended; (err != nil) != (ctx.Err() != nil) {
				t.Errorf("the server ends with %v", err)
			}
		})
	}
}

func TestRootsNarrowTheWorkdir(t *testing.T) {
	t.Parallel()
	s := settings(t)
	for _, c := range []struct {
		root    string
		allowed bool
	}{
		{"file://" + s.Workdir, true},
		{"file:///", true},
		{"file://" + t.TempDir(), false},
		{"https://example.com/", false},
	} {
		session := connect(t, s, nil, &mcp.Root{URI: c.root})
		if out, text, failed := call[runOutput](t, session, "run_agent", map[string]any{"prompt": "x"}); failed == c.allowed || failed && out.Kind != "usage" {
			t.Errorf("with the root %s: %q", c.root, text)
		}
	}
}
