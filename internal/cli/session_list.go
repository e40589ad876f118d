package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/busdk/bus-agent/internal/supervisor"
)

func (inv *invocation) sessionListCommand() *command {
	var every bool
	return &command{
		name:    "list",
		purpose: "list the sessions",
		details: `Prints the sessions that go on and those that have crashed, a line each, oldest
first: ID, name, runtime, state, age, directory. The states are starting, ready,
running (a turn), waiting (for an answer to a question), stopping, crashed, ended
and elsewhere (on another machine or in another container).`,
		json:     true,
		flags:    []*commandFlag{toggle("all", "list those that have ended too", &every)},
		examples: []example{{"what goes on here?", "bus-agent session list"}},
		exits:    exitCodes("the list was printed; it may be empty"),
		run: func(ctx context.Context, _ call) error {
			return inv.listSessions(ctx, every)
		},
	}
}

func (inv *invocation) listSessions(ctx context.Context, every bool) error {
	all, err := inv.sessions()
	if err != nil {
		return err
	}
	entries, err := all.List()
	if err != nil {
		return &failure{text: "sessions cannot be listed", err: cause(err)}
	}
	list := []supervisor.Status{}
	var asking sync.WaitGroup
	statuses := make([]supervisor.Status, len(entries))
	for i, e := range entries {
		asking.Go(func() { statuses[i], _ = all.Show(ctx, e) }) // what is not known of one is in its state
	}
	asking.Wait()
	for _, s := range statuses {
		if every || s.State != supervisor.StateEnded {
			list = append(list, s)
		}
	}
	if inv.global.json() {
		return inv.out.printJSON(list)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, s := range list {
		name := s.Name
		if name == "" {
			name = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.ID, name, oneWord(s.Runtime), s.State,
			time.Since(s.Started).Round(time.Second), printable(s.Workdir))
	}
	w.Flush()
	return inv.out.print(b.String())
}

func (inv *invocation) sessionShowCommand() *command {
	return &command{
		name:      "show",
		purpose:   "say what a session is and what it does",
		arguments: "ID",
		min:       1,
		max:       1,
		details: `Prints what is known of a session, with the questions for permission that are
open.`,
		json:     true,
		examples: []example{{"is it busy? does it ask for something?", "bus-agent session show review"}},
		exits:    exitCodes("it was printed"),
		words:    inv.sessionWords(allSessions),
		run: func(ctx context.Context, call call) error {
			all, entry, err := inv.findSession(call.args[0])
			if err != nil {
				return err
			}
			status, err := all.Show(ctx, entry)
			switch {
			case err != nil:
				return err
			case inv.global.json():
				return inv.out.printJSON(status)
			}
			return inv.out.print(inv.statusText(&status))
		},
	}
}

// statusText is a status for people, a line for each thing that is known.
func (inv *invocation) statusText(s *supervisor.Status) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s:\t%s\n", name, printable(value))
		}
	}
	row("id", s.ID)
	row("name", s.Name)
	row("state", s.State)
	row("runtime", s.Runtime)
	row("model", s.Model)
	row("runtime's session", s.SessionID)
	row("directory", s.Workdir)
	if id := s.CanonicalID; id != s.ID {
		row("GT_SESSION_ID", id)
	}
	row("started", s.Started.Local().Format(time.DateTime))
	if !s.Ready.IsZero() {
		row("ready", s.Ready.Local().Format(time.DateTime))
	}
	if !s.Ended.IsZero() {
		row("ended", s.Ended.Local().Format(time.DateTime))
	}
	row("reason", s.Reason)
	if s.Turns > 0 {
		row("turns", fmt.Sprintf("%d, %d waiting", s.Turns, s.Waiting))
	}
	if s.PID != 0 && s.Ended.IsZero() {
		row("supervisor", fmt.Sprintf("process %d", s.PID))
	}
	if a := s.Agent; a.PID != 0 {
		text := fmt.Sprintf("process %d, started %s", a.PID, a.Started.Local().Format(time.DateTime))
		if !a.Running {
			text += ", has ended"
		}
		row("agent", text)
	}
	for _, q := range s.Questions {
		text := q.ID
		if q.Tool != nil {
			text += ": " + q.Tool.Name + " " + wholeInput(q.Tool)
		}
		if q.Reason != "" {
			text += " (" + q.Reason + ")"
		}
		row("question", oneWord(text))
	}
	w.Flush()
	return b.String()
}
