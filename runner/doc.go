// Package runner detects, selects and runs agents.
//
// A [Runner] runs the runtimes of a registry. [Runner.Run] resolves a request (runtime,
// model, limits, instructions), starts the agent's executable once, reads its output to
// the end, leaves no process behind and returns one [agent.Result].
//
// # Selection
//
// The runtime comes from the first of: the call, the variables and preferences
// of [Sources] in their order, the first available runtime. A disabled runtime
// is skipped with a warning; an unknown name is a usage error; a named runtime
// that is not installed is an error. Available runtimes are ordered by the
// configured order, all others by ID.
//
// # Verdict
//
// A run succeeded when the process exited with 0 and, for runtimes that report
// a result, the last result event is a success. An agent that reported its
// result but does not exit is ended after five seconds of silence and judged
// by that result. Standard error never decides. An agent that exited before a
// timeout or cancellation reached it is judged by its exit and result, however long
// the caller took to read its last output. Time in which the agent waits for a slow
// consumer counts neither as silence nor as idleness.
//
// # Limits
//
// A line of output is decoded whole up to 16 MiB. Result keeps the head and
// tail of each output (see agent.Request.CaptureLimit) and at most 4 MiB of the
// final answer.
package runner
