package jsonline

import (
	"encoding/binary"
	"unicode/utf8"
)

// IsControl reports whether a character can drive a terminal or reorder what it
// shows: the C0 and C1 controls, DEL, and the embeddings, overrides and isolates of
// bidirectional text. Tabs, line feeds and the marks of direction, which right-to-left
// text needs and which move nothing but what is next to them, are not among them.
func IsControl(r rune) bool {
	switch {
	case r < ' ':
		return r != '\n' && r != '\t'
	case r < 0x7f:
		return false
	case r < 0xa0:
		return true
	}
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// EscapeControls escapes the characters for which [IsControl] holds and that JSON
// allows in a string as they are, in the JSON that begins at from in dst. It returns
// the slice, extended where there were some. Text that is JSON stays the same value.
func EscapeControls(dst []byte, from int) []byte {
	i := nextControl(dst, from)
	if i == len(dst) {
		return dst
	}
	rest := append([]byte(nil), dst[i:]...)
	dst = dst[:i]
	for i = 0; i < len(rest); {
		r, n := utf8.DecodeRune(rest[i:])
		if r >= 0x7f && IsControl(r) {
			const digits = "0123456789abcdef"
			dst = append(dst, '\\', 'u', digits[r>>12&0xf], digits[r>>8&0xf], digits[r>>4&0xf], digits[r&0xf])
			i += n
		}
		next := nextControl(rest, i)
		dst = append(dst, rest[i:next]...)
		i = next
	}
	return dst
}

// nextControl returns where the first character from U+007F on is for which
// [IsControl] holds, len(text) for none.
func nextControl(text []byte, i int) int {
	for i < len(text) {
		if i+wordSize <= len(text) {
			w := binary.LittleEndian.Uint64(text[i:])
			if (w|(w&^highs+ones))&highs == 0 { // below 0x7f
				i += wordSize
				continue
			}
		}
		c := text[i]
		switch {
		case c < 0x7f:
			i++
			continue
		case c != 0x7f && c != 0xc2 && c != 0xd8 && c != 0xe2:
			i++ // a part of another character
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		if IsControl(r) {
			return i
		}
		i += n
	}
	return i
}
