// Package control manages the sessions of a user: it starts, resumes, messages and
// stops them, keeps their entries in a folder, and notifies hooks. It is the Agent
// Runtime Interface of the specification over [runner.Runner.StartSession].
//
// A [Manager] holds the sessions that it has started; they end with its process. A
// Client reaches the sessions that other processes hold and serve, and starts each
// session in a separate process, which calls Serve. The command line uses it. A
// [Store] keeps an [Entry] for each session, for all processes: its state, and the
// [Settings] with which it is resumed after its end.
//
// # Environment
//
// The agent of a session and its tools know the session by the variables of the
// environment contract: see [Identity].
//
// # Hooks
//
// A [Hooks] passes events on to any number of sinks: functions, a file of lines of
// JSON, commands of the user. Sinks are given by the user, never by a
// repository. None of them can block or fail a session.
//
// # Runtime overrides
//
// FindRuntimeOverrides reads the files runtimes.json and runtime.json, which set only
// the default runtime of sessions.
package control
