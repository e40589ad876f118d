package jsonline

import (
	"encoding/binary"
	"math/bits"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special returns a word with the highest bit of the first byte set that is a
// quote, a backslash or a control character. Bits of later bytes mean nothing.
func special(w uint64) uint64 {
	// The bit that distinguishes a quote from a space is flipped, so that what is below
	// 0x21 are the control characters and the quote.
	low := w ^ ones*('"'^' ')
	slash := w ^ ones*'\\'
	return ((low-ones*0x21)&^low | (slash-ones)&^slash) & highs
}

// scanString returns the index of the quote that ends the string whose first
// byte is at i, and whether it has escapes; -1 if it is not ended or not
// well-formed.
func scanString(b []byte, i int) (end int, escaped bool) {
	if i+shortSize <= len(b) {
		if n := firstSpecial(b[i:]); n < shortSize {
			if i += n; b[i] == '"' {
				return i, false
			}
		} else if i += shortSize; wide && i+wideSize <= len(b) {
			i, escaped = scanWide(b, i)
		}
	}
	return scanRest(b, i, escaped)
}

// scanRest is scanString from any place of a string that is in no escape;
// escaped says whether there was one before.
func scanRest(b []byte, i int, escaped bool) (int, bool) {
	for {
		i = nextSpecial(b, i)
		if i >= len(b) {
			return -1, escaped
		}
		switch b[i] {
		case '"':
			return i, escaped
		case '\\':
			escaped = true
		default:
			return -1, escaped
		}
		for { // escapes often come one after the other
			if i+1 < len(b) && escapes[b[i+1]] != 0 {
				i += 2
			} else if i+5 < len(b) && b[i+1] == 'u' && hex4(b, i+2) >= 0 {
				i += 6
			} else {
				return -1, escaped
			}
			if i >= len(b) || b[i] != '\\' {
				break
			}
		}
		if wide && i+wideSize <= len(b) {
			i, _ = scanWide(b, i)
		}
	}
}

// shortSize is how many bytes firstSpecial looks at. Names and most other
// strings are shorter.
const shortSize = 16

// firstSpecial returns the index of the first quote, backslash or control
// character among the first 16 bytes of b, which has as many; 16 if there is
// none.
func firstSpecial(b []byte) int {
	p := b[:shortSize:shortSize]
	if m := special(binary.LittleEndian.Uint64(p[:8])); m != 0 {
		return bits.TrailingZeros64(m) >> 3
	}
	m := special(binary.LittleEndian.Uint64(p[8:]))
	return 8 + bits.TrailingZeros64(m)>>3 // of zero 64
}

// nextSpecial returns the index of the first quote, backslash or control
// character at i or after it, or the length of b.
func nextSpecial(b []byte, i int) int {
	for i+shortSize <= len(b) {
		if n := firstSpecial(b[i:]); n < shortSize {
			return i + n
		}
		i += shortSize
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// hex4 returns the value of the four hexadecimal digits at i, -1 if they are something else.
func hex4(b []byte, i int) rune {
	if i+4 > len(b) {
		return -1
	}
	var r rune
	for _, c := range b[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// scanNumber returns the index after the number at i, -1 if there is none.
func scanNumber(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	default:
		if i = digits(b, i); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i] == '.' {
		if i = digits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return digits(b, i)
	}
	return i
}

// digits returns the index after the digits at i, -1 if there are none.
func digits(b []byte, i int) int {
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}
