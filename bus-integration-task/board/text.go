package board

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain returns a text for display, cut to limit bytes with a mark at the end. Characters
// that act on the text around them become visible: control characters, those that change
// the writing direction and those without width.
func plain(s string, limit int) string {
	cut := len(s) > limit
	if cut {
		s = s[:startOfRune(s, limit)]
	}
	if strings.ContainsFunc(s, acts) || !utf8.ValidString(s) {
		s = visible(s)
		if len(s) > limit {
			s, cut = s[:startOfRune(s, limit)], true
		}
	}
	if cut {
		return s + "…"
	}
	return s
}

func visible(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i, r := range s {
		switch {
		case r == '\r' && strings.HasPrefix(s[i:], "\r\n"):
		case !acts(r):
			b.WriteRune(r) // an invalid byte becomes U+FFFD
		case r < ' ':
			b.WriteRune(0x2400 + r) // its picture
		case r == 0x7f:
			b.WriteRune(0x2421)
		default:
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		}
	}
	return b.String()
}

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

// startOfRune returns the start of the character that contains byte i.
func startOfRune(s string, i int) int {
	for n := range utf8.UTFMax {
		if i-n >= 0 && utf8.RuneStart(s[i-n]) {
			return i - n
		}
	}
	return i
}

// line is plain for one line: breaks become spaces.
func line(s string, limit int) string {
	return strings.Join(strings.Fields(plain(s, limit)), " ")
}
