// Package sessions manages the sessions of a user: it starts, resumes, messages
// and stops them by handle, keeps in a small folder what became of each, and tells
// hooks about them. It is the Agent Runtime Interface of the specification over
// [runner.Runner.StartSession].
//
// A [Manager] holds the sessions it has started; they end with its process. What
// it knows of them is in its [Store], for other processes and later ones: which
// sessions there are, whether they run, and how to go on with one that has ended.
//
// # Environment
//
// The agent of a session and its tools know the session by the variables of the
// environment contract: see [Identity].
//
// # Hooks
//
// A [Hooks] passes events on to any number of sinks: functions, a file of lines of
// JSON, commands of the user's. Sinks are given by the user, never by a
// repository. None of them can block or fail a session.
//
// # Choice of runtime
//
// [FindChoices] reads the files runtimes.json and runtime.json, which say which
// runtime sessions use by default, and nothing else.
package sessions
