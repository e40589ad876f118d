package cmdline

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/jsonline"
)

// Printable returns s as it may stand in a line of ours: as it is or, where it
// holds a line break or anything else that a terminal acts on, in quotes.
func Printable(s string) string {
	if strings.ContainsFunc(s, isControl) || !utf8.ValidString(s) {
		return strconv.Quote(s)
	}
	return s
}

// isControl reports whether a character breaks a line or drives a terminal.
func isControl(r rune) bool { return r == '\n' || r == '\t' || jsonline.IsControl(r) }

// OneWord returns name on one line, without control characters.
func OneWord(name string) string {
	return strings.ReplaceAll(formatters.SanitizeString(name), "\n", " ")
}

// Count returns a number and what it counts: "1 run" or "2 runs".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func ShellLine(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = ShellWord(a)
	}
	return strings.Join(quoted, " ")
}

// ShellWord returns s as one word of a shell: bare where it needs no quotes, in
// single quotes otherwise, as $'…' when it has control characters or is not
// text.
func ShellWord(s string) string {
	plain := s != ""
	control := false
	for _, r := range s {
		switch {
		case isControl(r) || r == utf8.RuneError:
			control = true
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("-_./:=,@%+", r):
		default:
			plain = false
		}
	}
	switch {
	case control:
		var b strings.Builder
		b.WriteString("$'")
		for i, r := range s {
			switch {
			case r == '\'' || r == '\\':
				b.WriteString(`\` + string(r))
			case r == '\n':
				b.WriteString(`\n`)
			case r == '\t':
				b.WriteString(`\t`)
			case isControl(r) || r == utf8.RuneError:
				_, size := utf8.DecodeRuneInString(s[i:])
				for _, c := range []byte(s[i : i+size]) {
					fmt.Fprintf(&b, `\x%02x`, c)
				}
			default:
				b.WriteRune(r)
			}
		}
		return b.String() + "'"
	case plain:
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// DurationText returns d without the zeros at its end: 1h, not 1h0m0s.
func DurationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func Quote(s string) string { return strconv.Quote(s) }
