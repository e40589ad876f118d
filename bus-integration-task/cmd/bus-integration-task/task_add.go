package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/busdk/bus-agent/agent"
	"github.com/urfave/cli/v2"

	"github.com/busdk/bus-integration-task/task"
	"github.com/busdk/bus-integration-task/tasklog"
)

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
		p.Recipient, p.Status = s.Recipient, string(task.StatusOpen)
		p.ThreadID, p.ThreadRuntime, p.ThreadPlace = s.Thread.ID, s.Thread.Runtime, s.Thread.Place
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
	args, err := arguments(c, 1, 3)
	if err != nil {
		return err
	}
	switch len(args) {
	case 1:
		return addTo(c, task.Approved, args[0], "", func(p *task.Payload, s *task.State) error {
			if s.Status != task.StatusPending {
				return fmt.Errorf("task %s is %s, not pending; to answer an approval request add its ID and a decision", p.WorkRef, s.Status)
			}
			p.Status = string(task.StatusOpen)
			return nil
		})
	case 2:
		return agent.Usagef("the decision is missing; add one of %s", strings.Join(decisions, ", "))
	}
	id, decision := args[1], args[2]
	if !slices.Contains(decisions, decision) {
		return agent.Usagef("%.80q is not a decision; use %s", decision, strings.Join(decisions, ", "))
	}
	if id == "" {
		return agent.Usagef("the ID of the approval request is empty; see task show %s", args[0])
	}
	return addTo(c, task.ApprovalAnswered, args[0], "", func(p *task.Payload, s *task.State) error {
		if !slices.ContainsFunc(s.Approvals, func(a task.Approval) bool { return a.ID == id }) {
			return fmt.Errorf("task %s has no open approval request %.80q; see task show %s", p.WorkRef, id, p.WorkRef)
		}
		p.ApprovalID, p.Decision = id, decision
		return nil
	})
}

// add appends an event to the task that is the first argument; the others are its text.
func add(c *cli.Context, name string, fill func(*task.Payload, *task.State) error) error {
	ref, text, err := referenceAndText(c, name == task.Canceled)
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
	printer, err := newPrinter(c)
	if err != nil {
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
			return unknown(ref)
		}
		p := task.Payload{WorkRef: ref, Recipient: state.Recipient, Sender: sender(), Text: text}
		if err := fill(&p, &state); err != nil {
			return err
		}
		id, err := log.Append(c.Context, name, p, state.LastID)
		if err == nil {
			return printer.added(id, name, ref)
		}
		if !errors.Is(err, tasklog.ErrConflict) {
			return err
		}
	}
}
