package jsonline

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// A Text is a string as written in the line, between its quotes. It is part
// of the line and valid until that is overwritten. The zero value is the
// empty string.
type Text struct {
	raw     []byte
	escaped bool
}

// IsEmpty reports whether the string is empty.
func (t Text) IsEmpty() bool { return len(t.raw) == 0 }

// Is reports whether the string is s.
func (t Text) Is(s string) bool {
	return string(t.Bytes()) == s
}

// Raw returns the string as it is in the line, without its quotes.
func (t Text) Raw() []byte { return t.raw }

// Bytes returns the string, unescaped. It is part of the line unless the string
// has escapes or bytes that are not UTF-8.
func (t Text) Bytes() []byte {
	if !t.escaped && utf8.Valid(t.raw) {
		return t.raw
	}
	return t.AppendTo(nil)
}

// String returns a copy of the string, unescaped.
func (t Text) String() string {
	if !t.escaped && utf8.Valid(t.raw) {
		return string(t.raw)
	}
	unescaped := t.AppendTo(make([]byte, 0, len(t.raw)+wordSize))
	return unsafe.String(unsafe.SliceData(unescaped), len(unescaped)) // it is not shared
}

// AppendTo appends the string, unescaped, to dst and returns the extended slice.
func (t Text) AppendTo(dst []byte) []byte {
	if !t.escaped && utf8.Valid(t.raw) {
		return append(dst, t.raw...)
	}
	return unescape(dst, t.raw)
}

// unescape appends to dst the value of the body of a JSON string, which is
// given without its quotes, and returns the extended slice. It takes any bytes:
// a backslash that does not begin an escape is kept, and so is an escape cut
// off at the end of raw.
func unescape(dst, raw []byte) []byte {
	if !utf8.Valid(raw) {
		return appendRepaired(dst, raw)
	}
	return appendUnescaped(dst, raw)
}

// wordSize is how many bytes are copied at a time.
const wordSize = 8

// appendUnescaped appends raw, which is UTF-8. The value of an escape is never
// longer than the escape, so words are copied as they are and overwritten from
// where an escape begins.
func appendUnescaped(dst, raw []byte) []byte {
	n := len(dst)
	out := slices.Grow(dst, len(raw)+wordSize)[:n+len(raw)+wordSize]
	i := 0
	for i+wordSize <= len(raw) {
		w := binary.LittleEndian.Uint64(raw[i:])
		binary.LittleEndian.PutUint64(out[n:], w)
		slash := w ^ ones*'\\'
		m := (slash - ones) &^ slash & highs
		if m == 0 {
			i, n = i+wordSize, n+wordSize
			continue
		}
		before := bits.TrailingZeros64(m) >> 3
		i, n = i+before, n+before
		for i < len(raw) && raw[i] == '\\' { // escapes often come one after the other
			i, n = unescapeAt(raw, i, out, n)
		}
	}
	for i < len(raw) {
		if raw[i] == '\\' {
			i, n = unescapeAt(raw, i, out, n)
			continue
		}
		out[n] = raw[i]
		i, n = i+1, n+1
	}
	return out[:n]
}

// unescapeAt writes the value of the escape at i to n, and returns where both
// end. A backslash that begins none is kept.
func unescapeAt(raw []byte, i int, out []byte, n int) (nextIn, nextOut int) {
	if i+1 < len(raw) {
		if c := escapes[raw[i+1]]; c != 0 {
			out[n] = c
			return i + 2, n + 1
		}
		if text, length := appendEscape(out[:n], raw[i:]); length > 0 {
			return i + length, len(text)
		}
	}
	out[n] = '\\'
	return i + 1, n + 1
}

// appendRepaired is appendUnescaped with each byte that is not UTF-8 made U+FFFD.
func appendRepaired(dst, raw []byte) []byte {
	for len(raw) > 0 {
		if raw[0] == '\\' {
			var n int
			if dst, n = appendEscape(dst, raw); n > 0 {
				raw = raw[n:]
				continue
			}
		}
		r, n := utf8.DecodeRune(raw)
		dst = utf8.AppendRune(dst, r)
		raw = raw[n:]
	}
	return dst
}

// appendEscape appends the value of the escape at the start of raw and
// returns its length, 0 if there is none.
func appendEscape(dst, raw []byte) ([]byte, int) {
	if len(raw) < 2 {
		return dst, 0
	}
	if c := escapes[raw[1]]; c != 0 {
		return append(dst, c), 2
	}
	if raw[1] == 'u' {
		return appendHexEscape(dst, raw)
	}
	return dst, 0
}

// escapes holds the value of an escape of one character, 0 where there is none.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func appendHexEscape(dst, raw []byte) ([]byte, int) {
	r := hex4(raw, 2)
	if r < 0 {
		return dst, 0
	}
	n := 6
	if utf16.IsSurrogate(r) {
		low := rune(-1)
		if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
			low = hex4(raw, 8)
		}
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			n = 12
		}
	}
	return utf8.AppendRune(dst, r), n
}

// AppendPrintable appends the beginning of the string, unescaped, as far as it is
// printable ASCII, tabs and line feeds, which occur as they are or in an
// escape of two characters. It returns the extended slice and the rest of the
// string.
func (t Text) AppendPrintable(dst []byte) ([]byte, Text) {
	raw, n := t.raw, len(dst)
	out := slices.Grow(dst, len(raw)+wordSize)[:n+len(raw)+wordSize]
	i := 0
	for i < len(raw) {
		if i+wordSize <= len(raw) {
			w := binary.LittleEndian.Uint64(raw[i:])
			binary.LittleEndian.PutUint64(out[n:], w)
			slash := w ^ ones*'\\'
			m := ((slash-ones)&^slash | w | (w + ones)) & highs // a backslash, above 0x7f, 0x7f
			if m == 0 {
				i, n = i+wordSize, n+wordSize
				continue
			}
			before := bits.TrailingZeros64(m) >> 3
			i, n = i+before, n+before
		}
		for ; i+1 < len(raw) && raw[i] == '\\'; i, n = i+2, n+1 { // escapes often come one after the other
			c := escapes[raw[i+1]]
			if c < ' ' && c != '\n' && c != '\t' {
				return out[:n], Text{raw: raw[i:], escaped: true}
			}
			out[n] = c
		}
		if i+wordSize <= len(raw) && raw[i] < 0x7f {
			continue
		}
		if i < len(raw) {
			if c := raw[i]; c >= 0x7f || c == '\\' {
				return out[:n], Text{raw: raw[i:], escaped: t.escaped}
			}
			out[n] = raw[i]
			i, n = i+1, n+1
		}
	}
	return out[:n], Text{}
}

// Rune returns the first character of the string, unescaped, and the rest of the
// string. For an empty string the character is U+FFFD.
func (t Text) Rune() (rune, Text) {
	raw := t.raw
	r, n := utf8.DecodeRune(raw)
	if r == '\\' {
		var text [utf8.UTFMax]byte
		if unescaped, length := appendEscape(text[:0], raw); length > 0 {
			r, _ = utf8.DecodeRune(unescaped)
			n = length
		}
	}
	return r, Text{raw: raw[n:], escaped: t.escaped}
}

// Head returns at most the first n bytes of the string as they are in the
// line, without a character or escape that would be cut.
func (t Text) Head(n int) Text {
	if n >= len(t.raw) {
		return t
	}
	return Text{raw: t.raw[:boundary(t.raw, max(n, 0))], escaped: t.escaped}
}

// Tail returns the last n bytes of the string as they are in the line, and
// more if they would begin inside a character or escape: the whole of it.
func (t Text) Tail(n int) Text {
	if n >= len(t.raw) {
		return t
	}
	return Text{raw: t.raw[boundary(t.raw, len(t.raw)-max(n, 0)):], escaped: t.escaped}
}

// boundary returns i, or where the character or escape begins that i is inside.
func boundary(raw []byte, i int) int {
	const longest = len(`\ud83d\ude00`)
	for j := max(i-longest+1, 0); j < i; j++ {
		if raw[j] == '\\' && j+escapeLen(raw[j:]) > i && beginsEscape(raw, j) {
			return j
		}
	}
	for back := 1; back < utf8.UTFMax && back <= i; back++ {
		if utf8.RuneStart(raw[i-back]) {
			if _, n := utf8.DecodeRune(raw[i-back:]); n > back {
				return i - back
			}
			break
		}
	}
	return i
}

// beginsEscape reports whether the backslash at j is not itself escaped.
func beginsEscape(raw []byte, j int) bool {
	n := 0
	for n < j && raw[j-1-n] == '\\' {
		n++
	}
	return n%2 == 0
}

// escapeLen returns the length of the escape at the start of raw, with the other
// half of a surrogate pair.
func escapeLen(raw []byte) int {
	if len(raw) < 2 || raw[1] != 'u' {
		return min(2, len(raw))
	}
	_, n := appendHexEscape(nil, raw)
	return max(n, 2)
}
