package cli

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/busdk/bus-agent/jsonline"
)

// printable returns s as it may stand in a line of ours: as it is or, where it
// holds a line break or anything else that a terminal acts on, in quotes.
func printable(s string) string {
	if strings.ContainsFunc(s, isControl) || !utf8.ValidString(s) {
		return strconv.Quote(s)
	}
	return s
}

// isControl reports whether a character breaks a line or drives a terminal.
func isControl(r rune) bool { return r == '\n' || r == '\t' || jsonline.IsControl(r) }
