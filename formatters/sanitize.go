package formatters

import (
	"math/bits"
	"unicode/utf8"

	"github.com/busdk/bus-agent/jsonline"
)

// Sanitize appends src to dst as text that is safe to print on a terminal, and
// returns the extended slice: escape sequences, control characters other than
// tab and line feed, and the characters that reorder text (U+202A to U+202E, U+2066
// to U+2069) are removed; a byte that is not UTF-8 becomes U+FFFD. An unfinished escape
// sequence ends with its line.
func Sanitize(dst, src []byte) []byte {
	var s sanitizer
	return s.end(appendSafe(&s, dst, src))
}

// SanitizeString is [Sanitize] for strings.
func SanitizeString(text string) string {
	if isSafe(text) {
		return text
	}
	var s sanitizer
	return string(s.end(appendSafe(&s, make([]byte, 0, len(text)), text)))
}

// isSafe reports whether text is plain ASCII that sanitizing leaves as it is.
func isSafe(text string) bool {
	for i := range len(text) {
		if !printable(text[i]) {
			return false
		}
	}
	return true
}

// A sanitizer removes what is not safe to print from a text that comes in
// pieces, cut anywhere. The zero value is ready.
type sanitizer struct {
	state   escape
	partial [utf8.UTFMax]byte // the beginning of a character
	n       int
}

// escape is the position in an escape sequence.
type escape uint8

const (
	plain        escape = iota
	escaped             // after ESC
	intermediate        // after ESC and intermediate bytes
	control             // in a control sequence
	command             // in a string that ends with ST or BEL
	commandEnd          // the same, after ESC
)

// appendSafe appends the safe part of src to dst.
func appendSafe[T ~string | ~[]byte](s *sanitizer, dst []byte, src T) []byte {
	for i := 0; i < len(src); {
		if s.n > 0 {
			// Complete the character that began in an earlier piece.
			s.partial[s.n] = src[i]
			s.n++
			i++
			if utf8.FullRune(s.partial[:s.n]) {
				dst = s.complete(dst)
			}
			continue
		}
		if s.state == plain {
			start := i
			i = safeUntil(src, i)
			dst = append(dst, src[start:i]...)
			if i == len(src) {
				break
			}
		}
		if src[i] < utf8.RuneSelf {
			dst = s.rune(dst, rune(src[i]))
			i++
			continue
		}
		next := string(src[i:min(i+utf8.UTFMax, len(src))])
		if !utf8.FullRuneInString(next) {
			s.n = copy(s.partial[:], next)
			break
		}
		r, size := utf8.DecodeRuneInString(next)
		dst = s.rune(dst, r)
		i += size
	}
	return dst
}

// appendSafeText appends the safe part of a string of a line to dst. No character
// has begun in an earlier piece.
func appendSafeText(s *sanitizer, dst []byte, t jsonline.Text) []byte {
	for !t.IsEmpty() {
		if s.state == plain {
			if dst, t = t.AppendPrintable(dst); t.IsEmpty() {
				break
			}
		}
		var r rune
		r, t = t.Rune()
		dst = s.rune(dst, r)
	}
	return dst
}

// safeUntil returns where the whole characters of src from i on end that are safe
// to print as they are.
func safeUntil[T ~string | ~[]byte](src T, i int) int {
	for {
		for i+8 <= len(src) {
			w := uint64(src[i]) | uint64(src[i+1])<<8 | uint64(src[i+2])<<16 | uint64(src[i+3])<<24 |
				uint64(src[i+4])<<32 | uint64(src[i+5])<<40 | uint64(src[i+6])<<48 | uint64(src[i+7])<<56
			if m := unsafeBytes(w); m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(src) {
			return i
		}
		r, n := rune(src[i]), 1
		if r >= utf8.RuneSelf {
			if r, n = utf8.DecodeRuneInString(string(src[i:min(i+utf8.UTFMax, len(src))])); n == 1 {
				return i
			}
		}
		if jsonline.IsControl(r) {
			return i
		}
		i += n
	}
}

// unsafeBytes returns a word with the highest bit of each byte set that is not
// printable ASCII, tab or line feed.
func unsafeBytes(w uint64) uint64 {
	const (
		ones = 0x0101010101010101
		low7 = ones * 0x7f
		high = ones * 0x80
	)
	seven := w & low7
	control := ^(seven + ones*(0x80-' ')) // below a space
	deleted := seven + ones               // 0x7f
	feed, tab := w^ones*'\n', w^ones*'\t'
	other := (feed&low7 + low7 | feed) & (tab&low7 + low7 | tab) // neither
	return (w | deleted | control&other) & high
}

// complete takes the bytes of partial: one character, or an invalid beginning
// followed by bytes that may begin another.
func (s *sanitizer) complete(dst []byte) []byte {
	for s.n > 0 && utf8.FullRune(s.partial[:s.n]) {
		r, size := utf8.DecodeRune(s.partial[:s.n])
		dst = s.rune(dst, r)
		s.n = copy(s.partial[:], s.partial[size:s.n])
	}
	return dst
}

// end takes the end of the text.
func (s *sanitizer) end(dst []byte) []byte {
	for range s.n {
		dst = s.rune(dst, utf8.RuneError)
	}
	*s = sanitizer{}
	return dst
}

func printable(b byte) bool { return b >= ' ' && b < 0x7f || b == '\n' || b == '\t' }

// rune takes the next character.
func (s *sanitizer) rune(dst []byte, r rune) []byte {
	if r == '\n' {
		s.state = plain
	}
	switch s.state {
	case escaped, intermediate:
		return s.afterEscape(dst, r)
	case control:
		switch {
		case r == can, r == sub:
			s.state = plain
			return dst
		case r >= ' ' && r < '@': // parameters and intermediates
			return dst
		case r >= '@' && r < 0x7f:
			s.state = plain
			return dst
		case r < utf8.RuneSelf && r != '\t' && r != esc:
			return dst // a terminal acts on these and continues the sequence
		}
		s.state = plain
	case command:
		switch r {
		case bel, st, can, sub:
			s.state = plain
		case esc:
			s.state = commandEnd
		}
		return dst
	case commandEnd:
		if r == '\\' {
			s.state = plain
			return dst
		}
		return s.afterEscape(dst, r)
	}
	return s.plain(dst, r)
}

const (
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	dcs = 0x90
	sos = 0x98
	csi = 0x9b
	st  = 0x9c
	osc = 0x9d
	pm  = 0x9e
	apc = 0x9f
)

func (s *sanitizer) afterEscape(dst []byte, r rune) []byte {
	first := s.state != intermediate
	s.state = plain
	switch {
	case first && r >= '@' && r <= '_':
		// ESC and a letter are the two-byte form of a C1 control.
		s.c1(r + 0x40)
		return dst
	case r >= ' ' && r < '0':
		s.state = intermediate
		return dst
	case r >= '0' && r < 0x7f:
		return dst
	}
	return s.plain(dst, r)
}

func (s *sanitizer) plain(dst []byte, r rune) []byte {
	switch {
	case r == esc:
		s.state = escaped
	case r >= 0x7f && r < 0xa0:
		s.c1(r)
	case jsonline.IsControl(r):
	default:
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

func (s *sanitizer) c1(r rune) {
	switch r {
	case csi:
		s.state = control
	case osc, dcs, sos, pm, apc:
		s.state = command
	}
}
