package acpagent_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/acpagent"
	"github.com/busdk/bus-agent/session/control"
)

// Serve one client. A program serves os.Stdin; this client only asks for the name of the agent.
func ExampleServer() {
	server := acpagent.Server{
		Name: "my-agent", Version: "1.0.0",
		Start: control.StartOptions{Settings: control.Settings{Access: agent.AccessRead}},
	}
	client := strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
	if err := server.Serve(context.Background(), client, os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":false,"audio":false,"embeddedContext":true},"mcpCapabilities":{"http":false,"sse":false},"sessionCapabilities":{"list":{},"resume":{},"close":{}}},"agentInfo":{"name":"my-agent","version":"1.0.0"},"authMethods":[]}}
}
