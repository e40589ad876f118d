// Package task is the life of a task as a pure state machine: the events of a task's log
// go in, and a state and decisions come out. It has no clock and does no input or output.
// Workers, the client, the board and the checker of the log share it.
//
// A task is a sequence of events with the same work reference. The order of the log is
// the order of their IDs. An event that does not fit the state, such as one from a worker
// that has lost its claim, changes nothing; [State.Apply] reports why. So all readers of
// a log agree on what happened, whatever was appended to it.
package task
