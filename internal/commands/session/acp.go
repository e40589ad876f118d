package session

import (
	"context"
	"slices"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/session/acpagent"
	"github.com/busdk/bus-agent/session/control"
)

// ACPCommand is "acp".
func ACPCommand(prog *cmdline.Program) *urfave.Command {
	o := &startOptions{}
	// The client names the directory of each session.
	flags := slices.DeleteFunc(slices.Concat(o.flags(prog), o.idleFlag()), func(f urfave.Flag) bool { return f.Names()[0] == "workdir" })
	return &urfave.Command{
		Name:      "acp",
		Usage:     "let an editor use an agent, by the Agent Client Protocol",
		ArgsUsage: "[-- ARGS]",
		Description: `Serves the Agent Client Protocol (ACP) on standard input and output, for editors and
other clients of the protocol, such as Zed and acpx. Each session of the client runs an
agent, in the directory that the client names. Approval requests and questions reach the
client. It can change the access, the model and the effort of a session.

The sessions end with the command. They are in "session list", "session watch" shows
them, and the client or "session resume" can continue them later. The last hundred
sessions that ended are kept; acp and chat remove those that ended more than 30 days ago.`,
		Flags: flags,
		UsageText: cmdline.UsageText(`# the command line of an agent, for the settings of an editor
bus-agent acp --agent RUNTIME`,
			"the client has ended the connection", "the client does not read what is sent to it"),
		BashComplete: cmdline.Completes(func([]string) []string { return nil }),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			opts, err := o.settle(ctx, prog, call.Rest)
			if err != nil {
				return err
			}
			opts.Workdir = ""
			store, err := openStore(prog)
			if err != nil {
				return err
			}
			_, _ = store.Prune(ctx, time.Now().Add(-keptChats)) // the next start retries
			warn := func(line string) { prog.Screen.Warn(cmdline.OneWord(line)) }
			server := acpagent.Server{
				Start: opts, Name: cmdline.Name, Version: prog.Env.Version, Warn: warn,
				Manager: func(ctx context.Context, s control.Settings) (*control.Manager, error) {
					m := newManager(ctx, prog, s, warn)
					m.Store, m.Serve = store, true
					return m, nil
				},
			}
			if err := server.Serve(ctx, prog.Env.Stdin, prog.Env.Stdout); ctx.Err() == nil {
				return err
			}
			return cmdline.StoppedBy(ctx)
		}),
	}
}
