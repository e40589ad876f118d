// Package fallback runs an agent and, where its runtime cannot work just now,
// another one: a decorator of [runner.Runner] with the same Run.
//
// Another runtime is tried only when the one before it ended with
// agent.ErrQuota or agent.ErrAuthentication, or is not installed, and never when
// it may have changed something by then, unless [Chain.AfterChanges] says so. It
// gets the request that the caller gave, in a fresh session, and its own default
// model: the name of a model means nothing to another runtime.
//
// A runtime may have changed something when it reported a changed file or called a
// tool that is none of its registry.Runtime.ReadingTools. With agent.AccessRead it
// cannot, except by what the request itself lets loose: Args, AllowCommands and
// TrustWorkspace. What a runtime does without telling is not seen.
//
// A runtime that ended in one of the two ways rests: for some time runs with
// fallback leave it out as long as there is another one. See [Cooldowns].
//
// To watch an agent, its events are read while another runtime is left to try. That
// takes away what runner.Runner does for callers who want no events, no text and no
// copy of them: leaving the lines that matter to nobody undecoded. It costs about
// half a millisecond a megabyte of output.
package fallback
