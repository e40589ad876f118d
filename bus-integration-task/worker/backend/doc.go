// Package backend runs one attempt at a task: a conversation with an agent, or commands
// in a container.
//
// A [Backend] starts an [Attempt] and reports to a [Listener] while it runs. [Session]
// is the backend for every runtime of bus-agent that holds sessions, which includes the
// Codex App Server; [Container] sends commands to a container integration. Neither knows
// tasks or Git: the worker publishes what is reported, and decides from the [Outcome]
// and the worktree how the task ends.
//
// # The life of an attempt
//
// [Backend.Start] returns at once. The attempt is done when the turn that its prompt
// began has ended, and every turn that [Running.Say] added. The agent is still there,
// so [Running.Ask] can request the closeout in the same conversation. [Running.Stop]
// ends the agent with all its processes. Only then is the worktree quiet, so Stop comes
// before anything is committed.
//
// # Messages
//
// A chatty agent must not flood the log of events. Its text is gathered and reported in
// whole as a [Listener.Message], what it does as a [Listener.Progress], each of at most
// [MaxText] bytes with the middle left out, and each at most once a second during the
// first minute of text, then every 5 and later every 15 seconds. A notice, an approval
// request or the end of a turn passes on at once what was gathered before it. The run
// record has everything.
//
// # Secrets
//
// Values of variables whose names end in _KEY, _TOKEN or _SECRET, in the environment of
// the worker or in [Attempt.Env], appear as "***" in all reported texts. The agent does
// not inherit the worker's own credentials: variables that begin with BUS_ and end in
// _KEY, _TOKEN, _TOKEN_FILE or _SECRET are removed from its environment.
package backend
