package runtimes

import (
	"context"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/verify"
)

// ToolName is the command with which agent CLIs start the MCP server of verify.
const ToolName = "__tool"

// ToolCommand serves the tool of the checks.
func ToolCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:   ToolName,
		Hidden: true,
		Action: prog.Action(cmdline.Slow, func(context.Context, cmdline.Call) error {
			return verify.ServeTool(prog.Env.Stdin, prog.Env.Stdout)
		}),
	}
}

// toolServer returns the command of that server.
func toolServer(prog *cmdline.Program) []string {
	if prog.Env.Executable == "" {
		return nil
	}
	return []string{prog.Env.Executable, ToolName}
}
