package preferences

import "errors"

// Errors to be tested for with errors.Is.
var (
	// ErrInvalidKey means that a key or prefix is not valid.
	ErrInvalidKey = errors.New("invalid preference key")
	// ErrInvalidJSON means that a value to be set is not a single JSON value in
	// valid UTF-8, repeats a key within an object, or is nested too deeply.
	ErrInvalidJSON = errors.New("invalid JSON value")
	// ErrNotString means that a value is not a JSON string.
	ErrNotString = errors.New("preference is not a string")
	// ErrMalformed means that the file is not a preferences file. It is not
	// modified.
	ErrMalformed = errors.New("malformed preferences file")
	// ErrUnknownVersion means that a newer version of the library wrote the file.
	// It can be read but not written.
	ErrUnknownVersion = errors.New("unknown version of the preferences file")
	// ErrNoLocation means that no variable names the file. Only writing fails;
	// reading finds no preferences.
	ErrNoLocation = errors.New("no location for the preferences file")
)
