package jsonline

import (
	"encoding/binary"
	"math/bits"
)

// form says what a string holds besides plain ASCII.
type form uint8

const (
	plain   form = 0
	escapes form = 1 << iota
	beyond       // bytes that are no ASCII, UTF-8 or not
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special returns a word with the highest bit of the first byte set that is a
// quote, a backslash or a control character. Bits of later bytes mean nothing.
func special(w uint64) uint64 {
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & highs
}

// scanString returns the index of the quote that ends the string whose first
// byte is at i, and what it holds; -1 if it is not ended or not well-formed.
func scanString(b []byte, i int) (end int, f form) {
	var seen uint64 // all bytes, one over the other
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			m := special(w)
			if m != 0 {
				n := bits.TrailingZeros64(m) >> 3
				seen |= w & (1<<(8*n) - 1)
				i += n
				break
			}
			seen |= w
			i += 8
		}
		if i >= len(b) {
			return -1, f
		}
		switch c := b[i]; {
		case c == '"':
			if seen&highs != 0 {
				f |= beyond
			}
			return i, f
		case c == '\\':
			f |= escapes
			for { // they often come one after the other
				if i+1 < len(b) && stands[b[i+1]] != 0 {
					i += 2
				} else if i+5 < len(b) && b[i+1] == 'u' && hex4(b, i+2) >= 0 {
					i += 6
				} else {
					return -1, f
				}
				if i >= len(b) || b[i] != '\\' {
					break
				}
			}
		case c < ' ':
			return -1, f
		default: // near the end of the line
			seen |= uint64(c)
			i++
		}
	}
}

// hex4 returns the value of the four hexadecimal digits at i, -1 if they are none.
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

// scanNumber returns the index after the number at i, -1 if it is none.
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
