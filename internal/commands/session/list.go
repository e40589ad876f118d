package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/busdk/bus-agent/internal/commands/cmdline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
)

func sessionListCommand(prog *cmdline.Program) *urfave.Command {
	var every bool
	return &urfave.Command{
		Name:  "list",
		Usage: "list the sessions",
		Description: `Prints the sessions that run and those that have crashed, a line each, oldest
first: ID, name, runtime, state, age, directory. The states are starting, ready,
running (a turn), waiting (for an answer to a question), stopping, stopped, crashed,
elsewhere (on another machine or in another container) and unreachable.`,
		Flags: []urfave.Flag{cmdline.Toggle("all", "list those that have stopped too", &every)},
		UsageText: cmdline.UsageText(`# which ones are running?
bus-agent session list`,
			"the list was printed; it may be empty"),
		Action: prog.Action(cmdline.JSON, func(ctx context.Context, _ cmdline.Call) error {
			return listSessions(prog, ctx, every)
		}),
	}
}

func listSessions(prog *cmdline.Program, ctx context.Context, every bool) error {
	client, err := sessions(prog)
	if err != nil {
		return err
	}
	entries, problems, err := client.Store.List(control.Filter{})
	if err != nil {
		return &cmdline.Failure{Text: "sessions cannot be listed", Err: cmdline.Cause(err)}
	}
	for _, p := range problems {
		prog.Screen.Warn(cmdline.OneWord(p.String()))
	}
	slices.Reverse(entries) // the oldest first
	entries = slices.DeleteFunc(entries, func(e control.Entry) bool { return !every && e.State == session.StateStopped })
	list := make([]control.Status, len(entries))
	var asking sync.WaitGroup
	for i, e := range entries {
		asking.Go(func() { list[i], _ = client.Show(ctx, e) }) // what is not known of one is in its state
	}
	asking.Wait()
	if prog.Global.JSON() {
		return prog.Out.PrintJSON(list)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, s := range list {
		name := s.Name
		if name == "" {
			name = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", s.SessionID, name, cmdline.OneWord(s.Runtime), s.State,
			time.Since(s.Started).Round(time.Second), cmdline.Printable(s.WorkDir))
	}
	w.Flush()
	return prog.Out.Print(b.String())
}

func sessionShowCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:      "show",
		Usage:     "say what a session is and what it does",
		ArgsUsage: "ID",
		Description: `Prints what is known of a session, with the questions for permission that are
open.`,
		UsageText: cmdline.UsageText(`# is it busy? does it ask for something?
bus-agent session show review`,
			"it was printed"),
		BashComplete: cmdline.Completes(sessionWords(prog, allSessions)),
		Action: prog.Action(cmdline.JSON, func(ctx context.Context, call cmdline.Call) error {
			client, entry, err := findSession(prog, call.Args[0])
			if err != nil {
				return err
			}
			status, err := client.Show(ctx, entry)
			switch {
			case err != nil:
				return err
			case prog.Global.JSON():
				return prog.Out.PrintJSON(status)
			}
			return prog.Out.Print(statusText(prog, &status))
		}),
	}
}

// statusText is a status for people, a line for each thing that is known.
func statusText(prog *cmdline.Program, s *control.Status) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s:\t%s\n", name, cmdline.Printable(value))
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
			text += ": " + a.Tool.Name + " " + cmdline.WholeInput(a.Tool)
		}
		if a.Reason != "" {
			text += " (" + a.Reason + ")"
		}
		row("question", cmdline.OneWord(text))
	}
	w.Flush()
	return b.String()
}
