package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/busdk/bus-agent/agent"
)

// A request is plain data: it can be stored, or sent to another process.
func ExampleRequest() {
	text, err := json.Marshal(agent.Request{Runtime: "codex:local", Prompt: "Fix the test.", Access: agent.AccessWrite, Timeout: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", text)
	// Output: {"runtime":"codex:local","prompt":"Fix the test.","access":"write","timeout_ns":60000000000}
}

// Tell the kinds of errors apart, and find how the agent ended.
func ExampleError() {
	var err error = &agent.Error{Kind: agent.ErrQuota, Runtime: "codex", Err: fmt.Errorf("no requests are left: %w", &agent.ExitError{Code: 1})}
	switch {
	case errors.Is(err, agent.ErrUsage):
		fmt.Println("fix the request")
	case errors.Is(err, agent.ErrQuota), errors.Is(err, agent.ErrAuthentication):
		fmt.Println("try another runtime")
	}
	if exit, ok := errors.AsType[*agent.ExitError](err); ok {
		fmt.Println("exit code", exit.Code)
	}
	fmt.Println(agent.KindOf(err))
	// Output:
	// try another runtime
	// exit code 1
	// quota
}

// Give an agent the MCP servers of a file, as --mcp does.
func ExampleParseMCPServers() {
	servers, err := agent.ParseMCPServers([]byte(`{"mcpServers": {
		"notes": {"command": "notes-mcp", "env": {"NOTES_KEY": "${NOTES_KEY}"}}
	}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	req := agent.Request{Prompt: "Sum up my notes.", MCPServers: servers}
	fmt.Println(req.MCPServers[0].Name, req.MCPServers[0].Type())
	// Output: notes stdio
}
