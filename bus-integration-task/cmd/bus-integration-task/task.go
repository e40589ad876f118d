package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/urfave/cli/v2"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/tasklog"
	"github.com/busdk/bus-integration-task/worktree"
)

// maxTimeout is the longest --timeout of watch.
const maxTimeout = 365 * 24 * time.Hour

func taskCommand() *cli.Command {
	return &cli.Command{
		Name:  "task",
		Usage: "create, watch and steer tasks",
		Flags: connectionFlags(),
		Subcommands: []*cli.Command{
			{
				Name: "new", Usage: "create a task", ArgsUsage: "@RECIPIENT TEXT",
				Description: "The text is the rest of the arguments, or standard input if it is \"-\". Its first line is the\n" +
					"title of the task.",
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
			{Name: "say", Usage: "send a message to the running turn", ArgsUsage: "REF MESSAGE", Flags: []cli.Flag{formatFlag}, Action: taskSay},
			{
				Name: "approve", Usage: "answer an approval request, or let a pending task begin",
				ArgsUsage: "REF [APPROVAL-ID accept|accept_for_session|decline|cancel]", Flags: []cli.Flag{formatFlag}, Action: taskApprove,
			},
			{Name: "reopen", Usage: "continue a task that has ended", ArgsUsage: "REF MESSAGE", Flags: []cli.Flag{formatFlag}, Action: taskReopen},
			{Name: "cancel", Usage: "end a task", ArgsUsage: "REF [REASON]", Flags: []cli.Flag{formatFlag}, Action: taskCancel},
			boardCommand(),
		},
	}
}

func taskNew(c *cli.Context) error {
	p, err := newTask(c)
	if err != nil {
		return err
	}
	printer, err := newPrinter(c)
	if err != nil {
		return err
	}
	log, err := openLog(c)
	if err != nil {
		return err
	}
	if p.WorkRef == "" {
		err = createNext(c.Context, log, c.String("project"), &p)
	} else if _, err = log.Append(c.Context, task.Created, p, ""); errors.Is(err, tasklog.ErrConflict) {
		err = fmt.Errorf("task %s exists; see task show %s", p.WorkRef, p.WorkRef)
	}
	if err != nil {
		return err
	}
	return printer.created(p)
}

// newTask returns the task that the command line describes, without a reference if the
// next free one is wanted.
func newTask(c *cli.Context) (task.Payload, error) {
	recipient, text, err := recipientAndText(c)
	if err != nil {
		return task.Payload{}, err
	}
	title, body, _ := strings.Cut(text, "\n")
	if more := c.String("body"); body != "" && more != "" {
		body += "\n\n" + more
	} else {
		body += more
	}
	p := task.Payload{
		Recipient: recipient, Sender: sender(), Status: string(task.StatusOpen), Text: strings.TrimSpace(title), Body: strings.TrimSpace(body),
		WorkRef: c.String("ref"), Branch: c.String("branch"), BaseBranch: c.String("base-branch"),
		WorktreeID: c.String("worktree-id"), ReuseWorktree: c.Bool("reuse-worktree"),
		Labels: task.Labels{
			WorkerProfile: c.String("worker-profile"), RequestedModel: c.String("model"), RequestedEffort: c.String("effort"),
		},
	}
	if c.IsSet("new-branch") {
		if p.Branch != "" {
			return p, agent.Usagef("--branch and --new-branch exclude each other")
		}
		p.Branch, p.CreateBranch = c.String("new-branch"), true
	}
	for _, branch := range []string{p.Branch, p.BaseBranch} {
		if err := worktree.CheckBranch(branch); branch != "" && err != nil {
			return p, agent.Usagef("%v", err)
		}
	}
	if _, err := agent.ParseEffort(p.Labels.RequestedEffort); err != nil && c.IsSet("effort") {
		return p, agent.Usagef("--effort: %v", err)
	}
	if c.Bool("pending") {
		p.Status = string(task.StatusPending)
	}
	switch {
	case p.WorkRef != "" && c.IsSet("project"):
		return p, agent.Usagef("--ref and --project exclude each other")
	case p.WorkRef != "":
		p.GroupID = groupOf(p.WorkRef)
		return p, checkRef(p.WorkRef)
	case checkRef(c.String("project")) != nil || strings.Contains(c.String("project"), "#") || len(c.String("project")) > maxProject:
		return p, agent.Usagef("--project %.80q: use at most %d letters, digits and _.:-/", c.String("project"), maxProject)
	}
	checked := p
	checked.WorkRef = c.String("project") + "#1.1"
	return p, tasklog.Check(task.Created, checked)
}

// maxProject leaves room for the number in a reference.
const maxProject = task.MaxRef - 20

// createNext creates a task with the number after the last one of the project. The log
// has no counter, so it looks for a number that is free, and then for the least one.
func createNext(ctx context.Context, log *tasklog.Log, project string, p *task.Payload) error {
	number := func(n int) {
		p.GroupID = strconv.Itoa(n)
		p.WorkRef = project + "#" + p.GroupID + ".1"
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
	if _, err := arguments(c, 0, 0); err != nil {
		return err
	}
	printer, err := newPrinter(c)
	if err != nil {
		return err
	}
	status, recipient := task.Status(c.String("status")), c.String("recipient")
	if status != "" && !slices.Contains(statuses, status) {
		var words []string
		for _, s := range statuses {
			words = append(words, string(s))
		}
		return agent.Usagef("--status %q: use %s", status, strings.Join(words, ", "))
	}
	if recipient != "" {
		if recipient, err = task.ParseRecipient(recipient); err != nil {
			return agent.Usagef("--recipient: %v", err)
		}
	}
	log, err := openLog(c)
	if err != nil {
		return err
	}
	log.Open = status != "" && !status.Ended()
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
	oldestFirst := func(a, b *task.State) int { return strings.Compare(a.CreatedID, b.CreatedID) }
	for _, s := range slices.SortedFunc(maps.Values(states), oldestFirst) {
		if s.Status == task.StatusUnknown || status != "" && status != s.Status || recipient != "" && recipient != s.Recipient {
			continue
		}
		if err := printer.state(s); err != nil {
			return err
		}
	}
	return nil
}

var statuses = []task.Status{
	task.StatusPending, task.StatusOpen, task.StatusClaimed, task.StatusRunning,
	task.StatusDone, task.StatusBlocked, task.StatusFailed, task.StatusCanceled,
}

func taskShow(c *cli.Context) error {
	ref, err := reference(c)
	if err != nil {
		return err
	}
	printer, err := newPrinter(c)
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
		if err := printer.event(e); err != nil {
			return err
		}
		return printer.body(e)
	})
	if err == nil && !found {
		err = unknown(ref)
	}
	return err
}

func unknown(ref string) error { return fmt.Errorf("there is no task %s; see task list", ref) }

func taskWatch(c *cli.Context) error {
	ref, err := reference(c)
	if err != nil {
		return err
	}
	printer, err := newPrinter(c)
	if err != nil {
		return err
	}
	limit := c.Duration("timeout")
	if c.IsSet("timeout") && (limit <= 0 || limit > maxTimeout) {
		return agent.Usagef("--timeout %v: use a duration from 1s to %v", limit, maxTimeout)
	}
	log, err := openLog(c)
	if err != nil {
		return err
	}
	ctx := c.Context
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("task %s has not ended within %v", ref, limit))
		defer cancel()
	}
	var state task.State
	show := func(e task.Event) error {
		state.Apply(e)
		return printer.event(e)
	}
	// A task that ended earlier may have been reopened, so only the end of the log counts.
	err = log.Read(ctx, ref, "", show)
	if err == nil && state.Ref == "" {
		return unknown(ref)
	}
	if err == nil && !state.Status.Ended() {
		err = log.Watch(ctx, ref, state.LastID, func(e task.Event) error {
			if err := show(e); err != nil || !state.Status.Ended() {
				return err
			}
			return errStop
		})
	}
	switch {
	case errors.Is(err, errStop):
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	if state.Status != task.StatusDone {
		return fmt.Errorf("task %s is %s", ref, state.Status)
	}
	return nil
}

func groupOf(ref string) string {
	_, number, _ := strings.Cut(ref, "#")
	group, _, _ := strings.Cut(number, ".")
	return group
}
