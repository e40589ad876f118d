// Package runner detects, selects and runs agents.
//
// [Runner] is the portable type over a registry of runtimes. [Runner.Run]
// settles a request (runtime, model, limits, instructions), starts the agent's
// executable once, reads what it says to the end, leaves no process behind and
// returns one [agent.Result].
//
// # Selection
//
// The runtime comes from the first of: the call, the variables and preferences
// of [Sources] in their order, the first available runtime. A disabled runtime
// is skipped with a warning; an unknown name is a usage error; a named runtime
// that is not installed is an error, never a silent fall-back. Available
// runtimes are ordered by the configured order, the rest by ID.
//
// # Verdict
//
// A run succeeded when the process exited with 0 and, for runtimes that report
// a result, the last result event is a success. An agent that reported its
// result but does not exit is ended after five seconds of silence and judged
// by that result. What an agent writes to standard error is never a verdict. An
// agent that exited before a limit or a cancellation could stop it is judged by
// what it did, however long its last output took to be passed on. Time in which
// the agent waits for a slow consumer is neither silence nor idleness.
//
// # Limits
//
// A line of output is decoded whole up to 16 MiB. Result keeps the head and
// tail of each output (see agent.Request.CaptureLimit) and at most 4 MiB of the
// final answer.
package runner
