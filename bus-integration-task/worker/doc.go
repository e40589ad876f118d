// Package worker claims the tasks of one recipient, has them worked on, and ends them.
//
// A Worker follows the log of tasks and decides with [task.State.Decide]. What it does to
// a task it appends only if it has seen the task's latest event. So of any number of
// workers one claims a task, and a worker that has lost its claim, because it was paused
// or cut off for longer than the lease, learns so before it can announce a commit or end
// the task.
package worker
