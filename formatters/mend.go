package formatters

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// Mend completes the head of a line that is an object of JSON, as [Lines] hands
// over of one that is too long: a text that is cut ends where it was cut, what
// else is not whole is left out, and what is open is closed. It returns nil for
// what cannot be such a head. It does not check that all of it is JSON, and does
// not change head.
func Mend(head []byte) []byte {
	head = bytes.TrimLeft(head, " \t\r")
	if len(head) == 0 || head[0] != '{' {
		return nil
	}
	var closing []byte // of what is open, innermost last
	whole := 0         // what can be kept before closing
	named := false     // the next text is a name
	for i := 0; i < len(head); {
		switch c := head[i]; c {
		case '{', '[':
			closing = append(closing, c+2)
			named = c == '{'
			i++
			whole = i
		case '}', ']':
			if len(closing) == 0 || closing[len(closing)-1] != c {
				return nil
			}
			closing = closing[:len(closing)-1]
			named = false
			i++
			whole = i
		case '"':
			end, cut := textEnd(head, i+1)
			if cut && named {
				return closed(head[:whole], "", closing)
			}
			if cut {
				return closed(head[:end], `"`, closing)
			}
			i = end
			if !named {
				whole = i
			}
		case ',':
			named = len(closing) > 0 && closing[len(closing)-1] == '}'
			i++
		case ':', ' ', '\t', '\r':
			named = named && c != ':'
			i++
		default:
			end := i + 1
			for end < len(head) && strings.IndexByte(",]} \t\r", head[end]) < 0 {
				end++
			}
			if end == len(head) { // it can go on
				return closed(head[:whole], "", closing)
			}
			i, whole = end, end
		}
	}
	return closed(head[:whole], "", closing)
}

// closed returns head with what closes it.
func closed(head []byte, quote string, closing []byte) []byte {
	line := make([]byte, 0, len(head)+len(quote)+len(closing))
	line = append(append(line, head...), quote...)
	for _, c := range slices.Backward(closing) {
		line = append(line, c)
	}
	return line
}

// textEnd returns where the text that begins at i ends, behind its quotation
// mark, or where it is cut, before a character that is not whole.
func textEnd(head []byte, i int) (end int, cut bool) {
	for i < len(head) {
		n := 1
		switch c := head[i]; {
		case c == '"':
			return i + 1, false
		case c == '\\' && i+1 < len(head) && head[i+1] == 'u':
			n = 6
		case c == '\\':
			n = 2
		case c >= utf8.RuneSelf && !utf8.FullRune(head[i:]):
			return i, true
		}
		if i+n > len(head) {
			return i, true
		}
		i += n
	}
	return i, true
}
