package runs

import (
	"strings"
	"time"
)

// timeOf returns the time at the beginning of a run ID, in any of its forms; ok is false
// without one.
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

// isFolderName reports whether a name is one path element and not hidden: hidden folders
// are not finished.
func isFolderName(name string) bool {
	return name != "" && name[0] != '.' && !strings.ContainsAny(name, "/\x00")
}
