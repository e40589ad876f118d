package cli

import (
	"context"
	"io"

	urfave "github.com/urfave/cli/v2"
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
		return inv.exit(inv.complete(env.Args[1:]))
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
	root   *urfave.Command
	rest   []string // what the command hands on
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
	inv.root = inv.rootCommand()
	return inv
}

func (inv *invocation) main(ctx context.Context) error {
	l := inv.arrange(inv.env.Args)
	switch {
	case l.help:
		return inv.out.print(inv.help(l.path))
	case l.version:
		return inv.out.print(program + " " + inv.version() + "\n")
	}
	inv.rest = l.rest
	return inv.app(l).RunContext(ctx, l.words())
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

// app returns the application with the command that l names.
func (inv *invocation) app(l *line) *urfave.App {
	app := &urfave.App{
		Name:                      program,
		Flags:                     inv.root.Flags,
		HideHelp:                  true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true,
		Writer:                    io.Discard,
		ErrWriter:                 io.Discard,
		Before:                    func(*urfave.Context) error { return inv.applyGlobals() },
		Action:                    inv.group,
		OnUsageError:              inv.usageError,
		// urfave/cli would end the program by itself.
		ExitErrHandler: func(*urfave.Context, error) {},
	}
	if len(l.path) > 1 {
		app.Commands = l.path[1:2]
		app.Commands[0].HelpName = "" // it is put together once more
	}
	return app
}
