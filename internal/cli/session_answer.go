package cli

import (
	"bytes"
	"context"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/jsonline"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

// interruptLimit is how long an agent may take to answer an interrupt.
const interruptLimit = 10 * time.Second

func (inv *invocation) sessionInterruptCommand() *urfave.Command {
	return &urfave.Command{
		Name:      "interrupt",
		Usage:     "end the running turn",
		ArgsUsage: "ID",
		Description: `Ends the running turn and the tools it has started. The session continues with the
messages that wait. A message that was accepted and has not reached the agent is a
turn too: where no other is running, it is not delivered. Without a turn nothing
happens, and a warning reports that. An agent has 10 seconds to answer; "session stop"
ends one that does not.`,
		UsageText:    inv.usageText(exitCodes("the turn was interrupted, or there was none", "the agent does not respond, or the session has ended"), example{"never mind", "bus-agent session interrupt review"}),
		BashComplete: completes(inv.sessionWords(control.Entry.Served)),
		Action: inv.action(slow, func(ctx context.Context, call call) error {
			client, entry, err := inv.findSession(call.args[0])
			if err != nil {
				return err
			}
			interrupted, err := client.Interrupt(ctx, entry, interruptLimit)
			if err == nil && !interrupted {
				inv.screen.warn("session " + entry.Label() + ": no turn is running; nothing was interrupted")
			}
			return canceledBy(ctx, err)
		}),
	}
}

// wholeInput returns the input of a tool that the user is to allow, with escapes for
// what a terminal would hide or act on.
func wholeInput(tool *agent.Tool) string {
	return string(jsonline.EscapeControls(bytes.Clone(tool.Input), 0))
}

func decisions() []string {
	return []string{string(session.Accept), string(session.AcceptForSession), string(session.Decline), string(session.Cancel)}
}

func (inv *invocation) sessionApproveCommand() *urfave.Command {
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
		UsageText:    inv.usageText(exitCodes("the agent has the answer", "the question is not open any more, or the session has ended"), example{"yes, to the only question", "bus-agent session approve review accept"}),
		BashComplete: completes(inv.sessionWords(control.Entry.Served, decisions()...)),
		Action: inv.action(slow, func(ctx context.Context, call call) error {
			question, word := "", call.args[1]
			if len(call.args) == 3 {
				question, word = call.args[1], call.args[2]
				if question == "" {
					return agent.Usagef("the question is given as an empty word; leave it out or name one")
				}
			}
			decision, err := session.ParseDecision(word)
			if err != nil {
				return err
			}
			client, entry, err := inv.findSession(call.args[0])
			if err != nil {
				return err
			}
			return canceledBy(ctx, client.Answer(ctx, entry, question, decision))
		}),
	}
}
