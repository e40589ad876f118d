package session

import (
	"context"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

func approveCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:      "approve",
		Usage:     "answer an approval request",
		ArgsUsage: "ID [REQUEST] DECISION",
		Description: `Answers an approval request of the agent. REQUEST is its ID, which "session show" and
"session watch" print. It can be left out if only one request is open. DECISION is one
of:

  accept              do it
  accept_for_session  do it, and do not ask again for the same action in this session
  decline             do not do it; the turn continues
  cancel              do not do it; the turn ends

decline and cancel also refuse to answer a question; "session answer" answers it.`,
		UsageText: cmdline.UsageText(`# accept the only request
bus-agent session approve review accept`,
			"the answer was delivered", "the request is no longer open, or the session has ended"),
		BashComplete: completes(prog, control.Entry.Served,
			string(session.Accept), string(session.AcceptForSession), string(session.Decline), string(session.Cancel)),
		Action: action(prog, cmdline.Slow, func(ctx context.Context, t target) error {
			request := ""
			if len(t.args) == 2 {
				if request = t.args[0]; request == "" {
					return cmdline.Misusef("REQUEST is empty; name a request or leave it out")
				}
			}
			decision, err := session.ParseDecision(t.args[len(t.args)-1])
			if err != nil {
				return err
			}
			return t.Answer(ctx, t.entry, request, decision)
		}),
	}
}
