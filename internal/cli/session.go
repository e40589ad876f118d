package cli

import (
	"context"
	"errors"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/control"
)

func (inv *invocation) sessionCommand() *urfave.Command {
	return &urfave.Command{
		Name:  "session",
		Usage: "manage background sessions",
		Description: `A session is a conversation of many turns with one agent. It continues in the
background when the command that started it has ended: each session has a small
process of its own that holds it, and ends with it.

Sessions are called by their name, their ID, or the beginning of one ID.`,
		Subcommands: []*urfave.Command{
			inv.sessionStartCommand(),
			inv.sessionSendCommand(),
			inv.sessionWatchCommand(),
			inv.sessionApproveCommand(),
			inv.sessionSteerCommand(),
			inv.sessionInterruptCommand(),
			inv.sessionListCommand(),
			inv.sessionShowCommand(),
			inv.sessionStopCommand(),
			inv.sessionResumeCommand(),
		},
		UsageText: inv.usageText(exitCodes("the command did what it says"),
			example{"start one", "bus-agent session start --agent " + runtimeHere + " --name tour"},
			example{"talk with it", `bus-agent session send tour "What is this?"`},
			example{"end it", "bus-agent session stop tour"},
		),
		Action: inv.group,
	}
}

// sessionStore returns the state folder of sessions.
func (inv *invocation) sessionStore() (*control.Store, error) {
	dir, err := control.DefaultDir(inv.env.Environ)
	return control.NewStore(dir), err
}

// sessions returns the client of the sessions that run in the background.
func (inv *invocation) sessions() (*control.Client, error) {
	store, err := inv.sessionStore()
	host := control.Program{Path: inv.env.Executable, Args: []string{program, serveCommand}, Environ: inv.env.Environ}
	return &control.Client{Store: store, Host: host, Report: inv.showReport}, err
}

// findSession returns the session that a user calls by label.
func (inv *invocation) findSession(label string) (*control.Client, control.Entry, error) {
	client, err := inv.sessions()
	if err != nil {
		return nil, control.Entry{}, err
	}
	entry, err := client.Store.Find(label)
	return client, entry, err
}

// sessionWords completes the first argument of a command.
func (inv *invocation) sessionWords(wanted func(control.Entry) bool, then ...string) func([]string) []string {
	return func(done []string) []string {
		if len(done) > 0 {
			return then
		}
		store, err := inv.sessionStore()
		if err != nil {
			return nil
		}
		list, _, _ := store.List(control.Filter{}) // errors are not shown while a user types
		var out []string
		for _, e := range list {
			if wanted(e) {
				out = append(out, e.Label()+"\t"+printable(e.Runtime+" in "+e.WorkDir))
			}
		}
		return out
	}
}

func endedSessions(e control.Entry) bool { return e.State.Ended() }

func allSessions(control.Entry) bool { return true }

// messageText returns what is said to an agent: the argument, where there is one,
// or what --prompt names.
func (inv *invocation) messageText(ctx context.Context, args []string, prompt string) (string, error) {
	switch {
	case len(args) > 0 && prompt != "":
		return "", agent.Usagef("the message is given twice, as an argument and by --prompt")
	case prompt != "":
		text, err := inv.readInput(ctx, "--prompt", prompt)
		return notEmpty(text, "--prompt "+quote(prompt)+" is", err)
	case len(args) > 0:
		return notEmpty(args[0], "the message is", nil)
	}
	return "", nil
}

// neededText is messageText where there must be one.
func (inv *invocation) neededText(ctx context.Context, args []string, prompt string) (string, error) {
	text, err := inv.messageText(ctx, args, prompt)
	if err == nil && text == "" {
		err = agent.Usagef("there is no message; give it as an argument or by --prompt FILE")
	}
	return text, err
}

// canceledBy turns the end of ctx into the error of a command that it ended.
func canceledBy(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, errReaderGone) {
		return stoppedBy(ctx)
	}
	return err
}
