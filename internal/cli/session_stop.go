package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/internal/supervisor"
)

func (inv *invocation) sessionStopCommand() *command {
	var reason value
	return &command{
		name:      "stop",
		purpose:   "end a session",
		arguments: "ID",
		min:       1,
		max:       1,
		details: `Ends the agent and everything it has started, and returns when nothing of it is
left. A running turn is given up, and messages that wait are not delivered. A
session that has ended is left as it is. Of one that has crashed, what lives on is
ended, and it is put down as ended. One whose socket is gone is ended by SIGTERM to
the process that holds it.`,
		flags:    []*commandFlag{option("reason", "write down `TEXT` as the reason", &reason)},
		examples: []example{{"that is all", `bus-agent session stop review --reason "all done"`}},
		exits:    exitCodes("the session has ended", "it could not be ended"),
		words:    inv.sessionWords(liveSessions),
		slow:     true,
		run: func(ctx context.Context, call call) error {
			all, entry, err := inv.findSession(call.args[0])
			if err != nil {
				return err
			}
			defer inv.removeLeft(context.WithoutCancel(ctx), entry)
			text := reason.text
			if text == "" {
				text = "stopped"
			}
			err = all.Stop(ctx, entry, text)
			if errors.Is(err, supervisor.ErrUnreachable) {
				inv.screen.warn(fmt.Sprintf("session %s has lost its socket; it is ended by SIGTERM to process %d", entry.Handle(), entry.PID))
				err = all.Terminate(ctx, entry)
			}
			return canceledBy(ctx, err)
		},
	}
}

func (inv *invocation) sessionResumeCommand() *command {
	o := &startOptions{}
	return &command{
		name:      "resume",
		purpose:   "go on with a session that has ended",
		arguments: "ID [PROMPT]",
		min:       1,
		max:       2,
		details: `Starts the agent again with what it remembers of a session that has ended or
crashed, under the same name and ID and with the same settings. Variables of --env
are not remembered; they are given again. Hooks are added to those that there are.
PROMPT, or what --prompt names, is the next message.`,
		json: true,
		flags: []*commandFlag{
			promptFlag(&o.prompt),
			option("env", "set a variable for the agent as `NAME=VALUE`; can be repeated", &o.env),
			o.idleFlag(),
			o.approvalFlag(),
			o.hookFileFlag(),
			o.hookCommandFlag(),
		},
		examples: []example{{"where were we?", "bus-agent session resume review"}},
		exits:    exitCodes("the session is there again", "the agent cannot go on with it"),
		words:    inv.sessionWords(endedSessions),
		slow:     true,
		run: func(ctx context.Context, call call) error {
			text, err := inv.messageText(ctx, call.args[1:], o.prompt)
			if err != nil {
				return err
			}
			all, entry, err := inv.findSession(call.args[0])
			if err != nil {
				return err
			}
			settings, err := inv.resumed(o, entry)
			if err != nil {
				return err
			}
			defer inv.removeLeft(context.WithoutCancel(ctx), entry) // that of the crash
			if err := inv.launch(ctx, all, entry, settings, text); err != nil {
				return err
			}
			return inv.printHandle(ctx, all, entry.ID)
		},
	}
}

// resumed returns the settings for going on with a session.
func (inv *invocation) resumed(o *startOptions, entry supervisor.Entry) (sessionSettings, error) {
	var s sessionSettings
	switch {
	case entry.Live():
		return s, agent.Usagef("session %s has not ended", entry.Handle())
	case entry.SessionID == "":
		return s, agent.Usagef("session %s has ended before its runtime gave it an ID; there is nothing to go on with", entry.Handle())
	}
	if err := json.Unmarshal(entry.Settings, &s); err != nil {
		return s, &failure{text: "the settings of session " + entry.Handle() + " cannot be read", err: err}
	}
	if err := checkEnv(o.env.list); err != nil {
		return s, err
	}
	if err := inv.addHooks(o, &s); err != nil {
		return s, err
	}
	s.Runtime, s.Resume, s.Env = entry.Runtime, entry.SessionID, o.env.list
	return s, o.times(&s)
}
