// Package closeout decides how an agent's work on a task ends: done, blocked or failed.
//
// A completed turn is not enough. The agent ends its last message with a [Closeout];
// [Parse] reads it. The worker measures the [Work]: changed files, commands and their
// exit codes, items of PLAN.md. [Judge] compares the two: what cannot be confirmed
// blocks the task. [Evidence] is the record of an attempt, and [Notes] publishes
// engineering notes with the command bus.
//
// The package has no clock. Only Notes starts a process; nothing reads or writes files.
package closeout
