// Package preferences stores the user's preferences for all BusDK modules in
// one file. A preference is a JSON value under a dotted key. The first segment
// of a key names the module that owns it:
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
// The first of these variables that is set names the file. A blank variable
// counts as unset.
//
//  1. $BUS_PREFERENCES_PATH
//  2. $BUS_CONFIG_DIR/preferences.json
//  3. %APPDATA%\Bus\preferences.json, on Windows only
//  4. $XDG_CONFIG_HOME/bus/preferences.json, not on Windows; a relative path is
//     ignored, as the XDG specification requires
//  5. $HOME/.config/bus/preferences.json, not on Windows
//
// Earlier versions used a directory "busdk" ("BusDK" on Windows) in 3 to 5. If
// only the old file exists, the first access moves it to the new location. If it
// cannot be moved, it is read in the old location and writing fails.
// BUS_PREFERENCES_PATH disables the move.
//
// # File
//
// The file is a JSON object with "version" 1 and "values", a flat object from
// whole keys to values. A missing or empty file holds no preferences. It is
// written in canonical form: object keys sorted at every level, two spaces of
// indentation, a final newline, numbers with their original digits. Unknown
// members and keys are preserved.
//
// # Concurrency
//
// All functions are safe for concurrent use by goroutines and processes. Writers
// hold a lock on "<file>.lock", so writes are never lost, and replace the file
// atomically, so readers, which take no lock, never see a partial write, even
// after a crash. If the file is a symbolic link, its target is replaced.
//
// # Errors
//
// [ErrInvalidKey], [ErrInvalidJSON] and [ErrNotString] concern an argument or a
// value and name its key. All other errors concern the file and name it. Errors
// never contain a value.
//
// If the context of a call is done while it waits for the lock, the call writes
// nothing and returns an error that wraps that of the context. It also fails if
// another program holds the lock for more than ten seconds.
package preferences
