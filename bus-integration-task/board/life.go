package board

import (
	"slices"

	"github.com/busdk/bus-integration-task/task"
)

// status is the status of a task as the board shows it: a task is running while a worker
// holds it, and waiting while the worker waits for an answer.
type status string

const (
	pending  = status(task.StatusPending)
	open     = status(task.StatusOpen)
	running  = status(task.StatusRunning)
	waiting  = status("waiting")
	blocked  = status(task.StatusBlocked)
	done     = status(task.StatusDone)
	failed   = status(task.StatusFailed)
	canceled = status(task.StatusCanceled)
)

func (s status) ended() bool { return task.Status(s).Ended() }

func statusOf(s *task.State) status {
	switch {
	case len(s.Approvals) > 0:
		return waiting
	case s.Status.Held():
		return running
	}
	return status(s.Status)
}

// asks reports whether an approval request has no answer.
func asks(s *task.State, id string) bool {
	return slices.ContainsFunc(s.Approvals, func(a task.Approval) bool { return a.ID == id })
}
