package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/urfave/cli/v2"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/tasklog"
)

var formatFlag = &cli.StringFlag{Name: "format", Value: "text", Usage: "text, or json for one JSON value a line"}

func taskCommand() *cli.Command {
	return &cli.Command{
		Name:  "task",
		Usage: "create, watch and steer tasks",
		Flags: connectionFlags(),
		Subcommands: []*cli.Command{
			{
				Name: "new", Usage: "create a task", ArgsUsage: "@RECIPIENT TEXT",
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "project", Value: "bus", Usage: "first part of the task's reference"},
					&cli.StringFlag{Name: "ref", Usage: "the task's whole reference, instead of the next free one"},
					&cli.StringFlag{Name: "body", Usage: "further text"},
					&cli.StringFlag{Name: "branch", Usage: "existing branch to work on"},
					&cli.StringFlag{Name: "new-branch", Usage: "branch to create"},
					&cli.StringFlag{Name: "base-branch", Usage: "branch to begin the work at"},
					&cli.StringFlag{Name: "worktree-id", Usage: "name of the worktree"},
					&cli.BoolFlag{Name: "reuse-worktree", Usage: "use the worktree if it exists"},
					&cli.StringFlag{Name: "worker-profile", Usage: "label for the worker"},
					&cli.StringFlag{Name: "model", Usage: "model to ask for"},
					&cli.StringFlag{Name: "effort", Usage: "reasoning effort to ask for"},
					&cli.BoolFlag{Name: "pending", Usage: "wait until the task is approved to begin (task approve REF)"},
					formatFlag,
				},
				Action: taskNew,
			},
			{Name: "list", Usage: "list tasks", Flags: []cli.Flag{
				&cli.StringFlag{Name: "recipient", Usage: "only tasks of this recipient"},
				&cli.StringFlag{Name: "status", Usage: "only tasks with this status"},
				formatFlag,
			}, Action: taskList},
			{Name: "show", Usage: "show the events of a task", ArgsUsage: "REF", Flags: []cli.Flag{formatFlag}, Action: taskShow},
			{Name: "watch", Usage: "show the events of a task until it ends", ArgsUsage: "REF", Flags: []cli.Flag{
				&cli.DurationFlag{Name: "timeout", Usage: "give up after this time"},
				formatFlag,
			}, Action: taskWatch},
			{Name: "say", Usage: "send a message to the running turn", ArgsUsage: "REF MESSAGE", Action: taskSay},
			{
				Name: "approve", Usage: "answer an approval request, or let a pending task begin",
				ArgsUsage: "REF [APPROVAL-ID accept|accept_for_session|decline|cancel]", Action: taskApprove,
			},
			{Name: "reopen", Usage: "continue a task that has ended", ArgsUsage: "REF MESSAGE", Action: taskReopen},
			{Name: "cancel", Usage: "end a task", ArgsUsage: "REF [REASON]", Action: taskCancel},
			boardCommand(),
		},
	}
}

func taskNew(c *cli.Context) error {
	recipient, text, err := recipientAndText(c.Args().Slice())
	if err != nil {
		return err
	}
	log, err := openLog(c)
	if err != nil {
		return err
	}
	p := task.Payload{
		Recipient: recipient, Sender: sender(), Status: string(task.StatusOpen), Text: text, Body: c.String("body"),
		Branch: c.String("branch"), BaseBranch: c.String("base-branch"),
		WorktreeID: c.String("worktree-id"), ReuseWorktree: c.Bool("reuse-worktree"),
		Labels: task.Labels{
			WorkerProfile: c.String("worker-profile"), RequestedModel: c.String("model"), RequestedEffort: c.String("effort"),
		},
	}
	if b := c.String("new-branch"); b != "" {
		if p.Branch != "" {
			return agent.Usagef("--branch and --new-branch exclude each other")
		}
		p.Branch, p.CreateBranch = b, true
	}
	if c.Bool("pending") {
		p.Status = string(task.StatusPending)
	}
	if p.WorkRef = c.String("ref"); p.WorkRef != "" {
		if err := checkRef(p.WorkRef); err != nil {
			return err
		}
		p.GroupID = groupOf(p.WorkRef)
		if _, err := log.Append(c.Context, task.Created, p, ""); errors.Is(err, tasklog.ErrConflict) {
			return fmt.Errorf("task %s exists; see task show %s", p.WorkRef, p.WorkRef)
		} else if err != nil {
			return err
		}
	} else if err := createNext(c.Context, log, c.String("project"), &p); err != nil {
		return err
	}
	if c.String("format") == "json" {
		return printJSON(c.App.Writer, map[string]string{"work_ref": p.WorkRef, "recipient": p.Recipient})
	}
	_, err = fmt.Fprintf(c.App.Writer, "created (%s) -> @%s\n", p.WorkRef, p.Recipient)
	return err
}

// createNext creates a task with the number after the last one of the project. The log
// has no counter, so it looks for a number that is free, and then for the least one.
func createNext(ctx context.Context, log *tasklog.Log, project string, p *task.Payload) error {
	number := func(n int) {
		p.GroupID = strconv.Itoa(n)
		p.WorkRef = project + "#" + p.GroupID + ".1"
	}
	if number(1); checkRef(p.WorkRef) != nil {
		return agent.Usagef("--project %q: use letters, digits, and _.:-/", project)
	}
	for taken := 0; ; {
		free := taken + 1
		for step := 1; ; step *= 2 {
			number(free)
			if exists, err := taskExists(ctx, log, p.WorkRef); err != nil {
				return err
			} else if !exists {
				break
			}
			taken, free = free, free+step
		}
		for free > taken+1 {
			middle := taken + (free-taken)/2
			number(middle)
			if exists, err := taskExists(ctx, log, p.WorkRef); err != nil {
				return err
			} else if exists {
				taken = middle
			} else {
				free = middle
			}
		}
		number(free)
		if _, err := log.Append(ctx, task.Created, *p, ""); !errors.Is(err, tasklog.ErrConflict) {
			return err
		}
		taken = free // another program has just created it
	}
}

var errStop = errors.New("stop")

func taskExists(ctx context.Context, log *tasklog.Log, ref string) (bool, error) {
	err := log.Read(ctx, ref, "", func(task.Event) error { return errStop })
	if errors.Is(err, errStop) {
		return true, nil
	}
	return false, err
}

func taskList(c *cli.Context) error {
	log, err := openLog(c)
	if err != nil {
		return err
	}
	states := map[string]*task.State{}
	err = log.All(c.Context, func(e task.Event) error {
		s := states[e.WorkRef]
		if s == nil {
			s = &task.State{}
			states[e.WorkRef] = s
		}
		s.Apply(e)
		return nil
	})
	if err != nil {
		return err
	}
	for _, ref := range slices.Sorted(maps.Keys(states)) {
		s := states[ref]
		if r := c.String("recipient"); r != "" && strings.TrimPrefix(r, "@") != s.Recipient {
			continue
		}
		if want := c.String("status"); want != "" && want != string(s.Status) {
			continue
		}
		if err := printState(c.App.Writer, c.String("format"), s); err != nil {
			return err
		}
	}
	return nil
}

func taskShow(c *cli.Context) error {
	ref, _, err := refAndText(c, 0)
	if err != nil {
		return err
	}
	log, err := openLog(c)
	if err != nil {
		return err
	}
	found := false
	err = log.Read(c.Context, ref, "", func(e task.Event) error {
		found = true
		return printEvent(c.App.Writer, c.String("format"), e)
	})
	if err == nil && !found {
		err = fmt.Errorf("there is no task %s; see task list", ref)
	}
	return err
}

func taskWatch(c *cli.Context) error {
	ref, _, err := refAndText(c, 0)
	if err != nil {
		return err
	}
	log, err := openLog(c)
	if err != nil {
		return err
	}
	ctx := c.Context
	if limit := c.Duration("timeout"); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("task %s has not ended within %v", ref, limit))
		defer cancel()
	}
	var state task.State
	show := func(e task.Event) error {
		state.Apply(e)
		return printEvent(c.App.Writer, c.String("format"), e)
	}
	// A task that ended earlier may have been reopened, so only the end of the log counts.
	err = log.Read(ctx, ref, "", show)
	if err == nil && !state.Status.Ended() {
		err = log.Watch(ctx, ref, state.LastID, func(e task.Event) error {
			if err := show(e); err != nil || !state.Status.Ended() {
				return err
			}
			return errStop
		})
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !errors.Is(err, errStop):
		return err
	case state.Status != task.StatusDone:
		return fmt.Errorf("task %s is %s", ref, state.Status)
	}
	return nil
}

func taskSay(c *cli.Context) error {
	return add(c, task.Message, func(p *task.Payload, s *task.State) error {
		if s.Status.Ended() {
			return fmt.Errorf("task %s is %s; use task reopen", p.WorkRef, s.Status)
		}
		return nil
	})
}

func taskReopen(c *cli.Context) error {
	return add(c, task.Reopened, func(p *task.Payload, s *task.State) error {
		if !s.Status.Ended() {
			return fmt.Errorf("task %s is %s; use task say", p.WorkRef, s.Status)
		}
		p.Recipient, p.Status, p.ThreadID = s.Recipient, string(task.StatusOpen), s.ThreadID
		return nil
	})
}

func taskCancel(c *cli.Context) error {
	return add(c, task.Canceled, func(p *task.Payload, s *task.State) error {
		if s.Status.Ended() {
			return fmt.Errorf("task %s is %s already", p.WorkRef, s.Status)
		}
		p.Status = string(task.StatusCanceled)
		return nil
	})
}

var decisions = []string{"accept", "accept_for_session", "decline", "cancel"}

func taskApprove(c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) == 1 {
		return add(c, task.Approved, func(p *task.Payload, s *task.State) error {
			if s.Status != task.StatusPending {
				return fmt.Errorf("task %s is %s, not pending; to answer an approval request add its ID and a decision", p.WorkRef, s.Status)
			}
			return nil
		})
	}
	if len(args) != 3 {
		return agent.Usagef("usage: task approve REF [APPROVAL-ID accept|accept_for_session|decline|cancel]")
	}
	id, decision := args[1], args[2]
	if !slices.Contains(decisions, decision) {
		return agent.Usagef("%q is not a decision; use %s", decision, strings.Join(decisions, ", "))
	}
	return addTo(c, task.ApprovalAnswered, args[0], "", func(p *task.Payload, s *task.State) error {
		if !slices.ContainsFunc(s.Approvals, func(a task.Approval) bool { return a.ID == id }) {
			return fmt.Errorf("task %s has no open approval request %q; see task show %s", p.WorkRef, id, p.WorkRef)
		}
		p.ApprovalID, p.Decision = id, decision
		return nil
	})
}

// add appends an event to the task that is the first argument; the others are its text.
func add(c *cli.Context, name string, fill func(*task.Payload, *task.State) error) error {
	least := 1
	if name == task.Canceled || name == task.Approved {
		least = 0
	}
	ref, text, err := refAndText(c, least)
	if err != nil {
		return err
	}
	return addTo(c, name, ref, text, fill)
}

// addTo appends an event if the task is in a state that fill accepts. It decides again if
// the task changes in the meantime.
func addTo(c *cli.Context, name, ref, text string, fill func(*task.Payload, *task.State) error) error {
	if err := checkRef(ref); err != nil {
		return err
	}
	log, err := openLog(c)
	if err != nil {
		return err
	}
	var state task.State
	for {
		err := log.Read(c.Context, ref, state.LastID, func(e task.Event) error {
			state.Apply(e)
			return nil
		})
		if err != nil {
			return err
		}
		if state.Ref == "" {
			return fmt.Errorf("there is no task %s; see task list", ref)
		}
		p := task.Payload{WorkRef: ref, Recipient: state.Recipient, Sender: sender(), Text: text}
		if err := fill(&p, &state); err != nil {
			return err
		}
		if _, err := log.Append(c.Context, name, p, state.LastID); !errors.Is(err, tasklog.ErrConflict) {
			return err
		}
	}
}

func recipientAndText(args []string) (recipient, text string, err error) {
	if len(args) < 2 || !strings.HasPrefix(args[0], "@") || len(args[0]) == 1 {
		return "", "", agent.Usagef("usage: task new [options] @RECIPIENT TEXT")
	}
	return args[0][1:], strings.Join(args[1:], " "), nil
}

// refAndText returns the first argument, and the others as one text of at least so many words.
func refAndText(c *cli.Context, least int) (ref, text string, err error) {
	args := c.Args().Slice()
	if len(args) < 1+least {
		return "", "", agent.Usagef("usage: task %s %s", c.Command.Name, c.Command.ArgsUsage)
	}
	if least == 0 && len(args) > 1 && (c.Command.Name == "show" || c.Command.Name == "watch") {
		return "", "", agent.Usagef("task %s takes one reference", c.Command.Name)
	}
	return args[0], strings.Join(args[1:], " "), checkRef(args[0])
}

func checkRef(ref string) error {
	if _, err := task.ParseRef(ref); err != nil {
		return agent.Usagef("%v", err)
	}
	return nil
}

func groupOf(ref string) string {
	_, number, _ := strings.Cut(ref, "#")
	group, _, _ := strings.Cut(number, ".")
	return group
}

func printJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

// printEvent prints an event as a row of columns with tabs between them.
func printEvent(w io.Writer, format string, e task.Event) error {
	if format == "json" {
		return printJSON(w, struct {
			ID     string    `json:"id"`
			Name   string    `json:"name"`
			Source string    `json:"source,omitempty"`
			Time   time.Time `json:"timestamp"`
			task.Payload
		}{e.ID, e.Name, e.Source, e.Time, e.Payload})
	}
	columns := []string{e.Name, e.WorkRef, oneLine(e.Text)}
	for _, c := range []struct{ name, value string }{
		{"status", e.Status}, {"source", e.Source}, {"worker", e.WorkerID}, {"approval", e.ApprovalID},
		{"decision", e.Decision}, {"commit", e.Commit}, {"run", e.RunID},
	} {
		if c.value != "" {
			columns = append(columns, c.name+"="+oneLine(c.value))
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(columns, "\t"))
	return err
}

func printState(w io.Writer, format string, s *task.State) error {
	if format == "json" {
		return printJSON(w, row{
			WorkRef: s.Ref, Recipient: s.Recipient, Status: s.Status, Text: s.Title, Note: s.Note, Round: s.Round,
			Worker: s.Attempt.WorkerID, Attempt: s.Attempt.ID, Approvals: len(s.Approvals), Branch: s.Branch.Name,
			ThreadID: s.ThreadID, Labels: s.Labels, Result: s.End.Text, Commit: s.End.Commit, RunID: s.End.RunID,
		})
	}
	_, err := fmt.Fprintln(w, strings.Join([]string{s.Ref, "@" + oneLine(s.Recipient), string(s.Status), oneLine(s.Title)}, "\t"))
	return err
}

// row is a task in JSON.
type row struct {
	WorkRef   string      `json:"work_ref"`
	Recipient string      `json:"recipient"`
	Status    task.Status `json:"status"`
	Text      string      `json:"text"`
	Note      string      `json:"note,omitempty"` // latest text of the worker
	Round     int         `json:"round"`
	Worker    string      `json:"worker_id,omitempty"` // that has the task
	Attempt   string      `json:"attempt_id,omitempty"`
	Approvals int         `json:"open_approvals"`
	Branch    string      `json:"branch,omitempty"`
	ThreadID  string      `json:"app_server_thread_id,omitempty"`
	Labels    task.Labels `json:"labels,omitzero"`
	Result    string      `json:"result,omitempty"` // of the latest end, as are the next two
	Commit    string      `json:"commit,omitempty"`
	RunID     string      `json:"run_id,omitempty"`
}
