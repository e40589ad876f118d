package cli

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable returns s as it may stand in a line of ours: as it is or, where it
// holds a line break or anything else that a terminal acts on, in quotes.
func printable(s string) string {
	if strings.ContainsFunc(s, unicode.IsControl) || !utf8.ValidString(s) {
		return strconv.Quote(s)
	}
	return s
}
