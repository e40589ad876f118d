// Package preferences reads and writes the defaults of bus-agent in the user's
// BusDK preferences, the ones that `bus preferences` and `bus-agent set` show
// and change. It is for programs that want those defaults: hand [User] to a
// runner.Runner, and change them with the Set functions.
//
// Every value is checked before it is written: a wrong one is an error of kind
// agent.ErrUsage and nothing is changed. Whether a runtime is known depends on
// the registry of the program, so that check is the caller's; see
// registry.Registry.ParseToken. All other errors say what is wrong with the
// preferences file, and errors.Is finds the context's error in them when ctx
// ended first.
//
// The functions may be called by several goroutines and processes at once; no
// write is lost. Where the file is, is decided at each call by the environment
// of the process: BUS_PREFERENCES_PATH, BUS_CONFIG_DIR and the user's
// configuration directory. A missing file holds no preferences, and the first
// write creates it.
package preferences
