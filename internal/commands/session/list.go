package session

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/internal/commands/cmdline"
	"github.com/busdk/bus-agent/jsonline"

	urfave "github.com/urfave/cli/v2"

	"github.com/busdk/bus-agent/session"
	"github.com/busdk/bus-agent/session/control"
	"github.com/busdk/bus-agent/session/policy"
)

func listCommand(prog *cmdline.Program) *urfave.Command {
	var all bool
	return &urfave.Command{
		Name:  "list",
		Usage: "list the sessions",
		Description: `Prints a line for each session that is running or has crashed, oldest first: ID, name,
runtime, state, age, directory; on a terminal, below a header. The states are starting, ready, running (a turn),
waiting (for an answer to an approval request or a question), stopping, stopped, crashed, elsewhere
(on another machine or in another container), unreachable and damaged (running, but its
entry is damaged; "session stop" ends it).`,
		Flags: []urfave.Flag{cmdline.Switch("all", "also list sessions that have stopped", &all)},
		UsageText: cmdline.UsageText(`# which sessions are running?
bus-agent session list`,
			"the list was printed; it may be empty"),
		Action: prog.Action(cmdline.JSON, func(ctx context.Context, _ cmdline.Call) error {
			client, err := newClient(prog)
			if err != nil {
				return err
			}
			reportCrashes(ctx, prog, client)
			entries, problems, err := client.List(control.Filter{})
			if err != nil {
				return &cmdline.Failure{Text: "cannot list sessions", Err: cmdline.Cause(err)}
			}
			for _, p := range problems {
				prog.Screen.Warn(cmdline.OneWord(p.String()))
			}
			slices.Reverse(entries)
			entries = slices.DeleteFunc(entries, func(e control.Entry) bool { return !all && e.State == session.StateStopped })
			list := make([]control.Status, len(entries))
			var asking sync.WaitGroup
			for i, e := range entries {
				asking.Go(func() { list[i], _ = client.Show(ctx, e) }) // a failure shows in the state
			}
			asking.Wait()
			table := prog.Table("ID", "NAME", "RUNTIME", "STATE", "AGE", "DIRECTORY")
			for _, s := range list {
				table.Row(s.SessionID, cmp.Or(s.Name, "-"), cmdline.OneWord(cmp.Or(s.Runtime, "-")), string(s.State), age(s.Started), cmdline.Printable(s.Workdir))
			}
			return prog.Out.Report(list, table.String())
		}),
	}
}

// age returns how long ago a session was started; "-" if that is not known.
func age(started time.Time) string {
	if started.IsZero() {
		return "-"
	}
	return time.Since(started).Round(time.Second).String()
}

func showCommand(prog *cmdline.Program) *urfave.Command {
	return &urfave.Command{
		Name:      "show",
		Usage:     "show the state of a session",
		ArgsUsage: "ID",
		Description: `Prints the state, IDs, mode, times and processes of a session, the ID of its record and
its open approval requests and questions.`,
		UsageText: cmdline.UsageText(`# is it busy? is it waiting for an answer?
bus-agent session show review`,
			"the session was shown"),
		BashComplete: completes(prog, always),
		Action: action(prog, cmdline.JSON, func(ctx context.Context, t target) error {
			status, err := t.Show(ctx, t.entry)
			if err != nil {
				return err
			}
			return prog.Out.Report(status, statusText(&status))
		}),
	}
}

// statusText returns a line for each thing that is known about a session.
func statusText(s *control.Status) string {
	var t cmdline.Table
	t.Field("id", s.SessionID)
	t.Field("name", s.Name)
	t.Field("state", string(s.State))
	t.Field("runtime", s.Runtime)
	t.Field("model", cmp.Or(s.NativeModel, s.Model))
	t.Field("runtime's session", s.NativeID)
	t.Field("mode", string(s.Mode))
	if !s.State.Ended() {
		t.Field("tmux socket", s.TmuxSocket)
	}
	if s.Policy != nil {
		t.Field("policy", fmt.Sprintf("%d rules, default %s", len(s.Policy.Rules), cmp.Or(s.Policy.Default, policy.Ask)))
	}
	t.Field("record", s.RunID)
	t.Field("directory", s.Workdir)
	t.Time("started", s.Started)
	t.Time("ready", s.Ready)
	t.Time("ended", s.Ended)
	t.Field("reason", s.Reason)
	if s.Turns > 0 {
		t.Field("turns", fmt.Sprintf("%d, %d waiting", s.Turns, s.Waiting))
	}
	if s.OwnerPID != 0 && !s.State.Ended() {
		t.Field("held by", fmt.Sprintf("process %d", s.OwnerPID))
	}
	switch {
	case s.PID != 0 && s.Running:
		t.Field("agent", fmt.Sprintf("process %d", s.PID))
	case s.PID != 0:
		t.Field("agent", fmt.Sprintf("process %d, has ended", s.PID))
	}
	for _, a := range s.Approvals {
		t.Field("approval request", cmdline.OneWord(a.ID+": "+requestText(a)))
	}
	text := t.String()
	for _, q := range s.Questions {
		text += fmt.Sprintf("question %s:\n", cmdline.OneWord(q.ID)) + questionText(q)
	}
	return text
}

// questionText returns questions as a run shows them.
func questionText(q session.QuestionRequest) string {
	return string(formatters.Text().Append(nil, &agent.Event{Kind: agent.KindQuestion, Text: q.Text, Questions: q.Questions}))
}

// requestText returns what an approval request asks for, with escapes for what a terminal
// would hide or act on.
func requestText(a session.Approval) string {
	text := "?"
	if a.Tool != nil {
		text = a.Tool.Name + " " + string(jsonline.EscapeControls(bytes.Clone(a.Tool.Input), 0))
	}
	if a.Reason != "" {
		text += " (" + a.Reason + ")"
	}
	return text
}
