package formatters

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// Mend returns a JSON object for a truncated line, whose head [Lines] hands over. A
// truncated text ends where it was cut, other incomplete values are left out, and open
// objects and arrays are closed. It returns nil if head does not begin a JSON object. It
// does not change head.
func Mend(head []byte) []byte {
	head = bytes.TrimLeft(head, " \t\r")
	if len(head) == 0 || head[0] != '{' {
		return nil
	}
	var (
		closing []byte // of what is open, innermost last
		whole   int    // the end of the last whole value, or of what opens one
		last    int    // the end of the last token
		name    bool   // the next token is a name
	)
	d := json.NewDecoder(bytes.NewReader(head))
	d.UseNumber()
	for whole == 0 || len(closing) > 0 {
		token, err := d.Token()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil
		}
		last = int(d.InputOffset())
		switch token {
		case json.Delim('{'):
			closing = append(closing, '}')
		case json.Delim('['):
			closing = append(closing, ']')
		case json.Delim('}'), json.Delim(']'):
			closing = closing[:len(closing)-1]
		default:
			if _, number := token.(json.Number); number && last == len(head) { // it can continue
				return closed(head[:whole], "", closing)
			}
			if name {
				name = false
				continue
			}
		}
		whole = last
		name = len(closing) > 0 && closing[len(closing)-1] == '}'
	}
	start := len(head) - len(bytes.TrimLeft(head[last:], " \t\r:,"))
	if len(closing) == 0 || name || start == len(head) || head[start] != '"' {
		return closed(head[:whole], "", closing)
	}
	text := wholeRunes(string(head[start:]))
	for !json.Valid([]byte(text + `"`)) { // the end of an escape is missing
		text = text[:len(text)-1]
	}
	return closed(head[:start+len(text)], `"`, closing)
}

// closed returns head with what closes it.
func closed(head []byte, quote string, closing []byte) []byte {
	line := slices.Concat(head, []byte(quote))
	for _, c := range slices.Backward(closing) {
		line = append(line, c)
	}
	return line
}
