package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// plain returns an agent's text for display: it makes control characters visible and
// removes terminal colors.
func plain(s string) string {
	if !strings.ContainsFunc(s, acts) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		if n := colorSequence(s[i:]); n > 0 {
			i += n
			continue
		}
		if strings.HasPrefix(s[i:], "\r\n") {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		writeVisible(&b, r)
	}
	return b.String()
}

// acts reports whether r changes the text around it, which can hide its meaning:
// control characters, those that change the writing direction, and those without
// width.
func acts(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < ' ' || r >= 0x7f && r < 0xa0:
		return true
	case r < 0x200b:
		return r == 0x00ad || r == 0x061c || r == 0x180e
	}
	// The joiners are needed to write Persian, Indic scripts and emoji.
	return r != 0x200c && r != 0x200d && (unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029)
}

func writeVisible(b *strings.Builder, r rune) {
	switch {
	case !acts(r):
		b.WriteRune(r)
	case r < ' ':
		b.WriteRune(0x2400 + r) // its picture
	case r == 0x7f:
		b.WriteRune(0x2421)
	default:
		fmt.Fprintf(b, "⟨U+%04X⟩", r)
	}
}

// colorSequence returns the length of the color escape sequence at the start of s, 0
// for none.
func colorSequence(s string) int {
	rest, ok := strings.CutPrefix(s, "\x1b[")
	if !ok {
		return 0
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != ';' && r != ':' })
	if end < 0 || rest[end] != 'm' {
		return 0
	}
	return len(s) - len(rest) + end + 1
}

// bounded is plain for a text of a record, cut to limit bytes with a mark at the end.
func bounded(s string, limit int) string {
	text := plain(s[:startOfRune(s, limit)])
	if len(text) <= limit && len(s) <= limit {
		return text
	}
	return text[:startOfRune(text, limit)] + "…"
}

// startOfRune returns the start of the character that contains byte i, or len(s) if
// that is less.
func startOfRune(s string, i int) int {
	if i >= len(s) {
		return len(s)
	}
	for n := range utf8.UTFMax {
		if i-n >= 0 && utf8.RuneStart(s[i-n]) {
			return i - n
		}
	}
	return i
}

// line is bounded for one line: breaks become spaces.
func line(s string, limit int) string {
	return strings.Join(strings.Fields(bounded(s, limit)), " ")
}

// count returns a number with separated thousands.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

// brief returns a number in three digits: 1.23M.
func brief(n int64) string {
	for _, unit := range []struct {
		size   float64
		letter string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if x := float64(n) / unit.size; x >= 0.9995 {
			return strconv.FormatFloat(x, 'f', digitsAfter(x), 64) + unit.letter
		}
	}
	return strconv.FormatInt(n, 10)
}

func digitsAfter(x float64) int {
	switch {
	case x < 9.995:
		return 2
	case x < 99.95:
		return 1
	}
	return 0
}

// span returns a duration in at most two units.
func span(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "0 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 59*time.Second+950*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	d = d.Round(time.Second)
	switch {
	case d < time.Hour:
		return fmt.Sprintf("%d m %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d m", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %02d h", int(d.Hours())/24, int(d.Hours())%24)
}

// dollars returns a cost with the given number of decimals.
func dollars(x float64, digits int) string {
	text := strconv.FormatFloat(x, 'f', digits, 64)
	whole, cents, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || x < 0 {
		return "$" + text
	}
	return "$" + count(n) + "." + cents
}

// size returns a number of bytes as text.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(int64(n)) + " " + many
}

// quotedSize returns the length of s as a string of encoding/json.
func quotedSize(s string) int {
	n := len(s) + len(`""`)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\t':
			n++
		case c < ' ' || c == '<' || c == '>' || c == '&':
			n += len(`\u003c`) - 1
		}
	}
	return n + 3*strings.Count(s, "\u2028") + 3*strings.Count(s, "\u2029")
}

// cut returns the beginning and end of a text that is longer than limit bytes, and the
// number of bytes left out between them.
func cut(s string, limit int) (kept string, left int) {
	if len(s) <= limit {
		return s, 0
	}
	head := strings.ToValidUTF8(s[:limit*3/4], "")
	tail := strings.ToValidUTF8(s[len(s)-limit/4:], "")
	left = len(s) - len(head) - len(tail)
	return head + "\n… " + size(int64(left)) + " left out …\n" + tail, left
}
