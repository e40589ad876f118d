// Package preferences stores the user's preferences for all BusDK modules in
// one file. A preference is a JSON value under a dotted key; the first segment
// of a key is the module that owns it:
//
//	bus-agent.runtime = "codex"
//
// # Keys
//
// A key is one or more segments joined by dots. A segment is one or more of
// a-z, 0-9, "-" and "_".
//
// # Location
//
// The first of these that applies names the file. A variable that is empty or
// blank is not set.
//
//  1. BUS_PREFERENCES_PATH, the file itself
//  2. BUS_CONFIG_DIR, with preferences.json in it
//  3. on Windows APPDATA, with Bus\preferences.json in it
//  4. elsewhere XDG_CONFIG_HOME, with bus/preferences.json in it; a relative
//     path there is ignored, as the XDG specification asks
//  5. elsewhere HOME, with .config/bus/preferences.json in it
//
// Earlier versions kept the file in a folder "busdk" (on Windows "BusDK") in
// the places of 3 to 5. When the file does not exist and such a file does, that
// one is moved to the new place by the first access; BUS_PREFERENCES_PATH turns
// this off. Where it cannot be moved it is read where it is, and writing fails.
//
// # File
//
// The file is a JSON object with "version" 1 and "values", a flat object from
// whole keys to values. A missing or empty file holds no preferences. It is
// written in canonical form: object keys sorted at every level, two spaces of
// indentation, a final line break, numbers with the digits they came with.
// Members and keys that this package does not know are kept.
//
// # Concurrency
//
// Every function may be called by any number of goroutines and processes at
// once. Writers take turns through a lock on "<file>.lock", so no write is
// lost, and replace the file as a whole, so that readers, which take no lock,
// and crashes at any moment see the file before or after a write. A preferences
// file that is a symbolic link stays one: its target is replaced.
//
// # Errors
//
// [ErrInvalidKey] and [ErrInvalidJSON] are mistakes of the caller. All others
// concern the file and name it. No error holds a value. A context that ends
// while a function waits for its turn ends the wait with the context's error
// and nothing written.
package preferences
