package jsonline

import (
	"strconv"
)

// maxDepth is how deeply values may be nested, as in encoding/json.
const maxDepth = 10_000

// A Reader reads one line of JSON. It never fails in the middle: after an error
// it has no more members and gives zero values, and [Reader.End] reports false.
// Call the methods that take a value only where there is one: at the start of
// the line, or once after each Next that returned true.
//
// It is used by one goroutine. Bytes and Texts that it returns are part of the
// line.
type Reader struct {
	line  []byte
	pos   int
	depth int
	// value says that the next thing is a value that has not been taken.
	value  bool
	failed bool
}

// New returns a reader of line, which it does not change.
func New(line []byte) Reader { return Reader{line: line, value: true} }

// End reports whether the whole line was JSON and every value that was taken
// had the type it was taken as. It skips the unread rest of the line, if all
// begun objects and arrays were read to their end.
func (r *Reader) End() bool {
	if r.value {
		r.skip()
	}
	if r.failed || r.depth != 0 {
		return false
	}
	return r.space() == 0 && r.pos == len(r.line)
}

// fail ends the reading.
func (r *Reader) fail() {
	r.failed, r.value = true, false
	r.pos = len(r.line)
}

// space skips white space and returns the byte after it, 0 at the end.
func (r *Reader) space() byte {
	for r.pos < len(r.line) {
		c := r.line[r.pos]
		if c > ' ' {
			return c
		}
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			break
		}
		r.pos++
	}
	return 0
}

// begin marks the value as taken and returns its first byte, 0
// where there is none.
func (r *Reader) begin() byte {
	if !r.value {
		r.fail()
		return 0
	}
	r.value = false
	return r.space()
}

// Kind is the type of a value.
type Kind uint8

// The types of values. Invalid is a malformed or missing value.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Object
	Array
)

// Kind returns the type of the next value, judged by its first character,
// without taking it.
func (r *Reader) Kind() Kind {
	if !r.value {
		return Invalid
	}
	switch c := r.space(); {
	case c == '"':
		return String
	case c == '{':
		return Object
	case c == '[':
		return Array
	case c == 'n':
		return Null
	case c == 't', c == 'f':
		return Bool
	case c == '-', c >= '0' && c <= '9':
		return Number
	}
	return Invalid
}

// Null reports whether the next value is null, and takes it if so.
func (r *Reader) Null() bool {
	if r.Kind() != Null {
		return false
	}
	r.begin()
	return r.null()
}

// null takes null, and fails where there is anything else.
func (r *Reader) null() bool {
	if !r.literal("null") {
		r.fail()
		return false
	}
	return true
}

func (r *Reader) literal(word string) bool {
	if len(r.line)-r.pos < len(word) || string(r.line[r.pos:r.pos+len(word)]) != word {
		return false
	}
	r.pos += len(word)
	return true
}

// Text takes a string as it is in the line.
func (r *Reader) Text() Text {
	if r.begin() != '"' {
		r.null()
		return Text{}
	}
	return r.text()
}

// text takes the string that begins here.
func (r *Reader) text() Text {
	start := r.pos + 1
	end, escaped := scanString(r.line, start)
	if end < 0 {
		r.fail()
		return Text{}
	}
	r.pos = end + 1
	return Text{raw: r.line[start:end:end], escaped: escaped}
}

// String takes a string and returns a copy of it, unescaped.
func (r *Reader) String() string {
	t := r.Text()
	return t.String()
}

// Bool takes a truth value.
func (r *Reader) Bool() bool {
	switch r.begin() {
	case 't':
		if r.literal("true") {
			return true
		}
		r.fail()
	case 'f':
		if !r.literal("false") {
			r.fail()
		}
	default:
		r.null()
	}
	return false
}

// Int takes an integer. A number with a fraction or an exponent is not an
// integer.
func (r *Reader) Int() int64 {
	number, ok := r.number()
	if !ok {
		return 0
	}
	if len(number) <= 18 { // no overflow
		digits, negative := number, number[0] == '-'
		if negative {
			digits = digits[1:]
		}
		n := int64(0)
		for _, c := range digits {
			if c < '0' || c > '9' {
				r.fail()
				return 0
			}
			n = n*10 + int64(c-'0')
		}
		if negative {
			n = -n
		}
		return n
	}
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		r.fail()
		return 0
	}
	return n
}

// number takes a number; it reports false for null and where there is none.
func (r *Reader) number() ([]byte, bool) {
	c := r.begin()
	if c != '-' && (c < '0' || c > '9') {
		r.null()
		return nil, false
	}
	end := scanNumber(r.line, r.pos)
	if end < 0 {
		r.fail()
		return nil, false
	}
	number := r.line[r.pos:end]
	r.pos = end
	return number, true
}

// Raw takes a value of any type as it is in the line, nil at an error.
func (r *Reader) Raw() []byte {
	r.Kind() // to its first byte
	start := r.pos
	r.skip()
	if r.failed {
		return nil
	}
	return r.line[start:r.pos:r.pos]
}

// skip takes a value of any type.
func (r *Reader) skip() {
	switch r.begin() {
	case 0:
		r.fail()
	case '"':
		r.text()
	default:
		end := skipValue(r.line, r.pos, r.depth)
		if end < 0 {
			r.fail()
			return
		}
		r.pos = end
	}
}
