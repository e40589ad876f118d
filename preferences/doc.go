// Package preferences reads and writes the defaults of bus-agent in the user's BusDK
// preferences, which `bus preferences` and `bus-agent set` show and change. Pass
// [User] to a runner.Runner, and change defaults with the Set functions.
//
// Every value is checked before it is written: an invalid one is an agent.ErrUsage
// error and changes nothing. The caller checks that a runtime exists; see
// registry.Registry.ParseToken. All other errors report a problem of the preferences
// file, or match the context's error.
//
// The functions may be called by several goroutines and processes at once; no write is
// lost. Each call finds the file by the environment of the process:
// BUS_PREFERENCES_PATH, BUS_CONFIG_DIR and the user's configuration directory. A
// missing file has no preferences, and the first write creates it.
package preferences
