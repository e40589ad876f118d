package session

import (
	"context"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session/control"
)

func Command(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:  "session",
		Usage: "manage background sessions",
		Description: `A session is a conversation of many turns with one agent. It continues in the
background when the command that started it has ended: each session has a small
process of its own that holds it, and ends with it.

Sessions are called by their name, their ID, or the beginning of one ID.`,
		Subcommands: []*urfave.Command{
			sessionStartCommand(prog),
			sessionSendCommand(prog),
			sessionWatchCommand(prog),
			sessionApproveCommand(prog),
			sessionSteerCommand(prog),
			sessionInterruptCommand(prog),
			sessionListCommand(prog),
			sessionShowCommand(prog),
			sessionStopCommand(prog),
			sessionResumeCommand(prog),
		},
		UsageText: cmdline.UsageText(`# start one
bus-agent session start --agent RUNTIME --name tour
# talk with it
bus-agent session send tour "What is this?"
# end it
bus-agent session stop tour`,
			"the command succeeded"),
		Action: prog.Group,
	}
}

// sessionStore returns the state folder of sessions.
func sessionStore(prog *cmdline.Program) (*control.Store, error) {
	dir, err := control.DefaultDir(prog.Env.Environ)
	return control.NewStore(dir), err
}

// sessions returns the client of the sessions that run in the background.
func sessions(prog *cmdline.Program) (*control.Client, error) {
	store, err := sessionStore(prog)
	host := control.Program{Path: prog.Env.Executable, Args: []string{cmdline.Name, ServeName}, Environ: prog.Env.Environ}
	return &control.Client{Store: store, Host: host, Report: showReport(prog)}, err
}

// findSession returns the session that a user calls by label.
func findSession(prog *cmdline.Program, label string) (*control.Client, control.Entry, error) {
	client, err := sessions(prog)
	if err != nil {
		return nil, control.Entry{}, err
	}
	entry, err := client.Store.Find(label)
	return client, entry, err
}

// sessionWords completes the first argument of a command.
func sessionWords(prog *cmdline.Program, wanted func(control.Entry) bool, then ...string) func([]string) []string {
	return func(done []string) []string {
		if len(done) > 0 {
			return then
		}
		store, err := sessionStore(prog)
		if err != nil {
			return nil
		}
		list, _, _ := store.List(control.Filter{}) // errors are not shown while a user types
		var out []string
		for _, e := range list {
			if wanted(e) {
				out = append(out, e.Label()+"\t"+cmdline.Printable(e.Runtime+" in "+e.WorkDir))
			}
		}
		return out
	}
}

func endedSessions(e control.Entry) bool { return e.State.Ended() }

func allSessions(control.Entry) bool { return true }

// messageText returns what is said to an agent: the argument, where there is one,
// or what --prompt names.
func messageText(prog *cmdline.Program, ctx context.Context, args []string, prompt string) (string, error) {
	switch {
	case len(args) > 0 && prompt != "":
		return "", agent.Usagef("the message is given twice, as an argument and by --prompt")
	case prompt != "":
		text, err := prog.ReadInput(ctx, "--prompt", prompt)
		return cmdline.NotEmpty(text, "--prompt "+cmdline.Quote(prompt)+" is", err)
	case len(args) > 0:
		return cmdline.NotEmpty(args[0], "the message is", nil)
	}
	return "", nil
}

// neededText is messageText where there must be one.
func neededText(prog *cmdline.Program, ctx context.Context, args []string, prompt string) (string, error) {
	text, err := messageText(prog, ctx, args, prompt)
	if err == nil && text == "" {
		err = agent.Usagef("there is no message; give it as an argument or by --prompt FILE")
	}
	return text, err
}
