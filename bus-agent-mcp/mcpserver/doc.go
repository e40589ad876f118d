// Package mcpserver serves package delegation by the Model Context Protocol. A build of
// bus-agent with [command.WithMCP] has the command mcp in the same program:
//
//	command.Main(version, command.WithMCP(mcpserver.Server{Version: version}.Serve))
package mcpserver
