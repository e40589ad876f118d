package cli

import (
	"bytes"
	"fmt"
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

// escapeControls escapes the control characters that encoding/json leaves in
// strings as they are: those from U+007F on.
func escapeControls(text []byte) []byte {
	if !bytes.ContainsFunc(text, isLateControl) {
		return text
	}
	var safe []byte
	for _, r := range string(text) {
		if isLateControl(r) {
			safe = fmt.Appendf(safe, `\u%04x`, r)
		} else {
			safe = utf8.AppendRune(safe, r)
		}
	}
	return safe
}

func isLateControl(r rune) bool { return r >= 0x7f && r < 0xa0 }
