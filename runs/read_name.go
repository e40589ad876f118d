package runs

import (
	"time"
)

// timeOf returns the time that the ID of a run begins with, in any of its forms; ok
// is false for a name that begins with none.
func timeOf(id string) (at time.Time, ok bool) {
	const second = len("20060102-150405")
	if len(id) < second+3 || id[8] != '-' {
		return at, false
	}
	fraction := 0
	for fraction < 4 && second+fraction < len(id) && isDigit(id[second+fraction]) {
		fraction++
	}
	rest := id[second+fraction:]
	if fraction < 3 || len(rest) < 2 || rest[0] != '-' || !isDigit(rest[1]) {
		return at, false
	}
	at, err := time.Parse("20060102-150405.000000000", id[:second]+"."+(id[second:second+fraction] + "000000000")[:9])
	return at, err == nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isName reports whether a name can be one folder below another: it leads nowhere
// else, and is not one of those that are hidden because they are not finished.
func isName(name string) bool {
	if name == "" || name[0] == '.' {
		return false
	}
	for i := range len(name) {
		if name[i] == '/' || name[i] == 0 {
			return false
		}
	}
	return true
}
