package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

func (inv *invocation) sessionListCommand() *urfave.Command {
	var every bool
	return &urfave.Command{
		Name:  "list",
		Usage: "list the sessions",
		Description: `Prints the sessions that run and those that have crashed, a line each, oldest
first: ID, name, runtime, state, age, directory. The states are starting, ready,
running (a turn), waiting (for an answer to a question), stopping, stopped, crashed,
elsewhere (on another machine or in another container) and unreachable.`,
		Flags:     []urfave.Flag{toggle("all", "list those that have stopped too", &every)},
		UsageText: inv.usageText(exitCodes("the list was printed; it may be empty"), example{"which ones are running?", "bus-agent session list"}),
		Action: inv.action(hasJSON, func(ctx context.Context, _ call) error {
			return inv.listSessions(ctx, every)
		}),
	}
}

func (inv *invocation) listSessions(ctx context.Context, every bool) error {
	client, err := inv.sessions()
	if err != nil {
		return err
	}
	entries, problems, err := client.Store.List(control.Filter{})
	if err != nil {
		return &failure{text: "sessions cannot be listed", err: cause(err)}
	}
	for _, p := range problems {
		inv.screen.warn(oneWord(p.String()))
	}
	slices.Reverse(entries) // the oldest first
	entries = slices.DeleteFunc(entries, func(e control.Entry) bool { return !every && e.State == session.StateStopped })
	list := make([]control.Status, len(entries))
	var asking sync.WaitGroup
	for i, e := range entries {
		asking.Go(func() { list[i], _ = client.Show(ctx, e) }) // what is not known of one is in its state
	}
	asking.Wait()
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
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.SessionID, name, oneWord(s.Runtime), s.State,
			time.Since(s.Started).Round(time.Second), printable(s.WorkDir))
	}
	w.Flush()
	return inv.out.print(b.String())
}

func (inv *invocation) sessionShowCommand() *urfave.Command {
	return &urfave.Command{
		Name:      "show",
		Usage:     "say what a session is and what it does",
		ArgsUsage: "ID",
		Description: `Prints what is known of a session, with the questions for permission that are
open.`,
		UsageText:    inv.usageText(exitCodes("it was printed"), example{"is it busy? does it ask for something?", "bus-agent session show review"}),
		BashComplete: completes(inv.sessionWords(allSessions)),
		Action: inv.action(hasJSON, func(ctx context.Context, call call) error {
			client, entry, err := inv.findSession(call.args[0])
			if err != nil {
				return err
			}
			status, err := client.Show(ctx, entry)
			switch {
			case err != nil:
				return err
			case inv.global.json():
				return inv.out.printJSON(status)
			}
			return inv.out.print(inv.statusText(&status))
		}),
	}
}

// statusText is a status for people, a line for each thing that is known.
func (inv *invocation) statusText(s *control.Status) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s:\t%s\n", name, printable(value))
		}
	}
	row("id", s.SessionID)
	row("name", s.Name)
	row("state", string(s.State))
	row("runtime", s.Runtime)
	row("model", cmp.Or(s.NativeModel, s.Model))
	row("runtime's session", s.NativeID)
	row("directory", s.WorkDir)
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
	if s.OwnerPID != 0 && !s.State.Ended() {
		row("held by", fmt.Sprintf("process %d", s.OwnerPID))
	}
	if s.PID != 0 {
		text := fmt.Sprintf("process %d", s.PID)
		if !s.Running {
			text += ", has ended"
		}
		row("agent", text)
	}
	for _, a := range s.Approvals {
		text := a.ID
		if a.Tool != nil {
			text += ": " + a.Tool.Name + " " + wholeInput(a.Tool)
		}
		if a.Reason != "" {
			text += " (" + a.Reason + ")"
		}
		row("question", oneWord(text))
	}
	w.Flush()
	return b.String()
}
