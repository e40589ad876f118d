// Command bus-agent-mcp is the command "bus-agent mcp": an MCP server through which an
// agent runs other agents. Its flags are those of the command: see "bus-agent mcp --help".
// bus-agent runs it, and MCP clients can run it too.
package main

import (
	"os"
	"slices"

	"github.com/busdk/bus-agent/bus-agent-mcp/mcpserver"
	"github.com/busdk/bus-agent/command"

	_ "github.com/busdk/bus-agent/backends/all"
	_ "github.com/busdk/bus-agent/backends/more"
)

// version is set by the linker: -ldflags "-X main.version=1.2.3".
var version string

func main() {
	os.Args = slices.Insert(os.Args, 1, "mcp")
	os.Exit(command.Main(version, command.WithMCP(mcpserver.Server{Version: version}.Serve)))
}
