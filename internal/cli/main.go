package cli

import (
	"context"
	"io"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
)

// program is the name in messages and help.
const program = "bus-agent"

// Main runs the command that env.Args names and returns the exit code: 0 for
// success, 2 when the call itself is wrong, 1 for every other failure. When ctx
// ends, a running agent is stopped and Main returns after its last process is
// gone. Main changes env.
func Main(ctx context.Context, env *Env) int {
	inv := newInvocation(env)
	inv.stored = readStored(ctx, env)
	if len(env.Args) > 0 && env.Args[0] == completeCommand {
		return inv.exit(inv.complete(ctx, env.Args[1:]))
	}
	if len(env.Args) == 1 && env.Args[0] == serveCommand {
		return inv.exit(inv.serve(ctx))
	}
	err := inv.main(ctx)
	if closeErr := inv.out.close(err == nil); err == nil {
		err = closeErr
	}
	return inv.exit(err)
}

// invocation is one run of the program.
type invocation struct {
	env    *Env
	stored stored
	global globals
	root   *command
	out    *results
	screen *screen

	workdirs []string // where agents run, besides the current directory

	outlets *outlets
	stdout  io.Writer // standard output, through its outlet
}

func newInvocation(env *Env) *invocation {
	inv := &invocation{env: env, stored: stored{registry: env.registry()}, outlets: newOutlets()}
	inv.stdout = toTerminal(inv.outlets.writer(env.Stdout), isTerminalWriter(env.Stdout))
	inv.screen = newScreen(toTerminal(inv.outlets.writer(env.Stderr), env.Terminal.Stderr || isTerminalWriter(env.Stderr)))
	inv.out = &results{inv: inv}
	inv.root = inv.commands()
	return inv
}

func (inv *invocation) main(ctx context.Context) error {
	line, err := parse(inv.root, inv.env.Args)
	switch {
	case line.help:
		return inv.out.print(inv.help(line.path))
	case line.version:
		return inv.out.print(program + " " + inv.version() + "\n")
	case err != nil:
		inv.peekQuiet(line)
		return err
	case len(line.path) == 1:
		inv.peekQuiet(line)
		return &misuse{agent.Usagef("no command given"), inv.root}
	}
	return inv.app(line).RunContext(ctx, line.arguments())
}

// begin lets the program get ready for work that takes time.
func (inv *invocation) begin(ctx context.Context, slow bool) (context.Context, func()) {
	if !slow || inv.env.Begin == nil {
		return ctx, func() {}
	}
	ctx, end := inv.env.Begin(ctx)
	stop := inv.outlets.watch(ctx)
	return ctx, func() {
		stop()
		end()
	}
}

func (inv *invocation) version() string {
	if inv.env.Version == "" {
		return "devel"
	}
	return inv.env.Version
}

// app makes the framework's application for one parsed line. The framework
// stores flags and dispatches. Everything it would print or exit by itself is
// switched off: an unknown command would end the program with status 3, a bad
// flag would print to standard output.
func (inv *invocation) app(line line) *urfave.App {
	root := inv.root.build(inv, line)
	return &urfave.App{
		Name:            program,
		Flags:           root.Flags,
		Commands:        root.Subcommands,
		HideHelp:        true,
		HideVersion:     true,
		HideHelpCommand: true,
		Writer:          io.Discard,
		ErrWriter:       io.Discard,
		Before:          func(*urfave.Context) error { return inv.applyGlobals() },
		OnUsageError:    usageError,
		ExitErrHandler:  func(*urfave.Context, error) {},
	}
}

func usageError(_ *urfave.Context, err error, _ bool) error {
	return agent.Usagef("%w", err)
}
