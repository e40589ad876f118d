package session

import (
	"context"
	"time"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// interruptLimit is how long an agent may take to answer an interrupt.
const interruptLimit = 10 * time.Second

func sessionInterruptCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:      "interrupt",
		Usage:     "end the running turn",
		ArgsUsage: "ID",
		Description: `Ends the running turn and the tools it has started. The session continues with the
messages that wait. A message that was accepted and has not reached the agent is a
turn too: where no other is running, it is not delivered. Without a turn nothing
happens, and a warning reports that. An agent has 10 seconds to answer; "session stop"
ends one that does not.`,
		UsageText: cmdline.UsageText(`# never mind
bus-agent session interrupt review`,
			"the turn was interrupted, or there was none", "the agent does not respond, or the session has ended"),
		BashComplete: cmdline.Completes(sessionWords(prog, control.Entry.Served)),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			client, entry, err := findSession(prog, call.Args[0])
			if err != nil {
				return err
			}
			interrupted, err := client.Interrupt(ctx, entry, interruptLimit)
			if err == nil && !interrupted {
				prog.Screen.Warn("session " + entry.Label() + ": no turn is running; nothing was interrupted")
			}
			return cmdline.CanceledBy(ctx, err)
		}),
	}
}

func sessionApproveCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:      "approve",
		Usage:     "answer a question for permission",
		ArgsUsage: "ID [QUESTION] DECISION",
		Description: `Answers a question that the agent waits with. QUESTION is its ID, which
"session show" and "session watch" print; it can be left out while one is open.
DECISION is one of:

  accept              do it
  accept_for_session  do it, and do not ask for the like again
  decline             do not; the turn continues without
  cancel              do not; the turn ends`,
		UsageText: cmdline.UsageText(`# yes, to the only question
bus-agent session approve review accept`,
			"the agent has the answer", "the approval request is not open any more, or the session has ended"),
		BashComplete: cmdline.Completes(sessionWords(prog, control.Entry.Served, decisions()...)),
		Action: prog.Action(cmdline.Slow, func(ctx context.Context, call cmdline.Call) error {
			question, word := "", call.Args[1]
			if len(call.Args) == 3 {
				question, word = call.Args[1], call.Args[2]
				if question == "" {
					return agent.Usagef("the question is given as an empty word; leave it out or name one")
				}
			}
			decision, err := session.ParseDecision(word)
			if err != nil {
				return err
			}
			client, entry, err := findSession(prog, call.Args[0])
			if err != nil {
				return err
			}
			return cmdline.CanceledBy(ctx, client.Answer(ctx, entry, question, decision))
		}),
	}
}

func decisions() []string {
	return []string{string(session.Accept), string(session.AcceptForSession), string(session.Decline), string(session.Cancel)}
}
