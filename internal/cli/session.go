package cli

import (
	"context"
	"errors"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/supervisor"
	"github.com/busdk/bus-agent/sessions"
)

func (inv *invocation) sessionCommand() *command {
	return &command{
		name:    "session",
		purpose: "talk with agents that go on running",
		details: `A session is a conversation of many turns with one agent. It goes on in the
background when the command that started it has ended: each session has a small
process of its own that holds it, and ends with it.

Sessions are called by their name, their ID, or the beginning of one ID.`,
		sub: []*command{
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
		examples: []example{
			{"start one", "bus-agent session start --agent " + runtimeHere + " --name tour"},
			{"talk with it", `bus-agent session send tour "What is this?"`},
			{"end it", "bus-agent session stop tour"},
		},
		exits: exitCodes("the command did what it says"),
	}
}

// sessionStore returns the state folder of sessions.
func (inv *invocation) sessionStore() (*sessions.Store, error) {
	dir, err := sessions.DefaultDir(inv.env.Environ)
	return sessions.NewStore(dir), err
}

// sessions returns the sessions that go on in the background.
func (inv *invocation) sessions() (*supervisor.Sessions, error) {
	store, err := inv.sessionStore()
	return &supervisor.Sessions{Folder: store.Dir()}, err
}

// findSession returns the session that a handle names.
func (inv *invocation) findSession(handle string) (*supervisor.Sessions, supervisor.Entry, error) {
	all, err := inv.sessions()
	if err != nil {
		return nil, supervisor.Entry{}, err
	}
	entry, err := all.Find(handle)
	return all, entry, err
}

// sessionWords completes the first argument of a command.
func (inv *invocation) sessionWords(wanted func(*supervisor.Entry) bool, then ...string) func([]string) []string {
	return func(done []string) []string {
		if len(done) > 0 {
			return then
		}
		all, err := inv.sessions()
		if err != nil {
			return nil
		}
		list, _ := all.List() // nobody reads an error while typing
		var out []string
		for _, e := range list {
			if wanted(&e) {
				out = append(out, e.Handle()+"\t"+printable(e.Runtime+" in "+e.Workdir))
			}
		}
		return out
	}
}

func liveSessions(e *supervisor.Entry) bool { return e.Live() }

func endedSessions(e *supervisor.Entry) bool { return !e.Live() }

func allSessions(*supervisor.Entry) bool { return true }

// messageText returns what is said to an agent: the argument, where there is one,
// or what --prompt names.
func (inv *invocation) messageText(ctx context.Context, args []string, prompt value) (string, error) {
	switch {
	case len(args) > 0 && prompt.set:
		return "", agent.Usagef("the message is given twice, as an argument and by --prompt")
	case prompt.set:
		text, err := inv.readInput(ctx, "--prompt", prompt.text)
		return notEmpty(text, "--prompt "+quote(prompt.text)+" is", err)
	case len(args) > 0:
		return notEmpty(args[0], "the message is", nil)
	}
	return "", nil
}

// neededText is messageText where there must be one.
func (inv *invocation) neededText(ctx context.Context, args []string, prompt value) (string, error) {
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
