// Package fallback runs an agent and, where its runtime cannot work just now,
// another one. [Chain.Run] has the signature of runner.Runner.Run.
//
// Another runtime is tried only after agent.ErrQuota, agent.ErrAuthentication or
// agent.ErrNotInstalled, and only if the runtime before it changed nothing, unless
// [Chain.AfterChanges] is set. It gets the caller's request in a new session, with
// its own default model: a model name means nothing to another runtime.
//
// A runtime may have changed something when it reported a changed file or called a
// tool that is not among its registry.Runtime.ReadingTools. With agent.AccessRead it
// cannot, unless the request sets Args, AllowCommands or TrustWorkspace. Changes
// that a runtime does not report are not seen.
//
// After agent.ErrQuota or agent.ErrAuthentication a runtime is in cooldown: for some
// time, runs with fallback leave it out while they have another one. See [Cooldowns].
//
// While another runtime is left to try, the events of the agent are decoded even for
// callers that want none. That takes about half a millisecond per megabyte of output.
package fallback
