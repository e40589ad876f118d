package preferences

import "errors"

// The errors callers can tell apart with errors.Is.
var (
	// ErrInvalidKey: a key or prefix does not follow the grammar.
	ErrInvalidKey = errors.New("invalid preference key")
	// ErrInvalidJSON: a value to be set is not one valid JSON text in UTF-8, or
	// repeats a key within an object.
	ErrInvalidJSON = errors.New("invalid JSON value")
	// ErrNotString: the value is JSON of another type than string.
	ErrNotString = errors.New("preference is not a string")
	// ErrMalformed: the file is not a preferences file. It is left as it is.
	ErrMalformed = errors.New("malformed preferences file")
	// ErrUnknownVersion: the file was written by a newer version of the
	// library. It can be read but is not written.
	ErrUnknownVersion = errors.New("unknown version of the preferences file")
	// ErrNoLocation: no variable says where the file is. Reading then finds
	// nothing and only writing fails.
	ErrNoLocation = errors.New("no location for the preferences file")
)
