package runner

import (
	"unicode/utf16"
	"unicode/utf8"
)

// A meaning is what an escape in a text can mean.
type meaning struct {
	bytes [utf8.UTFMax]byte
	n     int // of bytes
	next  int // where the text continues
}

const (
	maxMeanings = 4 // of an escape
	// maxSlashes is the length of the longest run of backslashes that is one escape:
	// that of a backslash in JSON within JSON within JSON.
	maxSlashes = 8
)

// decode appends the meanings of the escape that begins at i, with a backslash or a
// percent sign. Open reports that more text could add one.
func decode(all []meaning, text string, i int) (_ []meaning, open bool) {
	if text[i] == '%' {
		b, state := hexadecimal(text, i+1, 2)
		if state == whole {
			all = append(all, meaning{[4]byte{byte(b)}, 1, i + 3})
		}
		return all, state == short
	}
	run := slashes(text, i)
	for n := 2; n <= run; n *= 2 {
		all = append(all, meaning{[4]byte{'\\'}, 1, i + n})
	}
	next := i + run
	if next == len(text) {
		return all, true
	}
	if b := escaped(text[next]); b != 0 {
		return append(all, meaning{[4]byte{b}, 1, next + 1}), false
	}
	r, next, state := unicodeEscape(text, next)
	if state == whole && utf16.IsSurrogate(r) {
		if next == len(text) {
			return all, true
		}
		again := slashes(text, next)
		if next+again == len(text) {
			return all, true
		}
		if again != run {
			return all, false
		}
		var low rune
		low, next, state = unicodeEscape(text, next+again)
		if r = utf16.DecodeRune(r, low); state == whole && r == utf8.RuneError {
			return all, false
		}
	}
	if state != whole {
		return all, state == short
	}
	m := meaning{next: next}
	m.n = utf8.EncodeRune(m.bytes[:], r)
	return append(all, m), false
}

// slashes returns how many backslashes follow from i on, maxSlashes at most.
func slashes(text string, i int) (n int) {
	for n < maxSlashes && i+n < len(text) && text[i+n] == '\\' {
		n++
	}
	return n
}

// escaped returns what a character means behind a backslash, 0 for nothing.
func escaped(c byte) byte {
	switch c {
	case '"', '/', '\'':
		return c
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return 0
}

// unicodeEscape reads uXXXX at i and returns where the text continues.
func unicodeEscape(text string, i int) (r rune, next int, state completeness) {
	if text[i] != 'u' {
		return 0, i, wrong
	}
	n, state := hexadecimal(text, i+1, 4)
	return rune(n), i + 5, state
}

// completeness reports whether a form is in a text.
type completeness int

const (
	wrong completeness = iota
	short              // the text ends in it
	whole
)

// hexadecimal reads a number of n digits at i.
func hexadecimal(text string, i, n int) (number int, state completeness) {
	for k := range n {
		if i+k >= len(text) {
			return 0, short
		}
		c := text[i+k]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, wrong
		}
		number = number<<4 | int(c)
	}
	return number, whole
}
