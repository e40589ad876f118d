package commands

import (
	"context"
	"os"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/internal/commands/mcp"
	"github.com/busdk/bus-agent/internal/commands/run"
	"github.com/busdk/bus-agent/internal/commands/runs"
	"github.com/busdk/bus-agent/internal/commands/runtimes"
	"github.com/busdk/bus-agent/internal/commands/session"
	"github.com/busdk/bus-agent/internal/commands/settings"

	urfave "github.com/urfave/cli/v2"
)

// Env is all that the program sees of the world.
type Env = cmdline.Env

// Main runs the command that env.Args names and returns the exit code: 0 for
// success, 2 for a usage error, 1 for every other failure. When ctx ends, a running
// agent is stopped, and Main returns once its last process is gone. It changes env.
func Main(ctx context.Context, env *Env) int {
	return cmdline.Main(ctx, env, &urfave.Command{
		Usage: "run AI coding agents through one interface",
		Description: `bus-agent runs the agent CLI you have installed with a prompt, in a directory,
and shows what it does. Registered runtimes: RUNTIMES.`,
		UsageText: cmdline.UsageText(`# which runtimes are installed? the first one is the default
bus-agent detect
# ask an agent about the code in this directory
bus-agent run --access read --text "What does this project do?"
# choose the default runtime
bus-agent set runtime RUNTIME`,
			"the command succeeded"),
	}, subjects)
}

// subjects are the commands of the program, in the order of its help.
var subjects = []cmdline.Command{
	{Name: "detect", Make: runtimes.DetectCommand},
	{Name: "run", Make: run.Command},
	{Name: "session", Make: session.Command},
	{Name: "chat", Make: session.ChatCommand},
	{Name: "mcp", Make: mcp.Command},
	{Name: "acp", Make: session.ACPCommand},
	{Name: "runs", Make: runs.Command},
	{Name: "render", Make: run.RenderCommand},
	{Name: "format", Make: run.FormatCommand},
	{Name: "set", Make: settings.SetCommand},
	{Name: "unset", Make: settings.UnsetCommand},
	{Name: "config", Make: settings.ConfigCommand},
	{Name: "instructions", Make: runtimes.InstructionsCommand},
	{Name: "runtime", Make: runtimes.Command},
	{Name: "doctor", Make: runtimes.DoctorCommand},
	{Name: "verify", Make: runtimes.VerifyCommand},
	{Name: runtimes.ToolName, Make: runtimes.ToolCommand},
	{Name: session.ServeName, Make: session.ServeCommand},
}

// TerminalOf reports what standard output and standard error are connected to.
func TerminalOf(stdout, stderr *os.File) cmdline.Terminal { return cmdline.TerminalOf(stdout, stderr) }
