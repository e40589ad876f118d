package structured

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bounds of the JSON that is read, so that no answer and no schema can use up time or
// memory.
const (
	maxDepth  = 200  // of arrays and objects in each other
	maxNumber = 1000 // length of a number, in bytes
)

// Why a text is not a JSON value.
var (
	errEnds   = errors.New("the text ends before the JSON value does")
	errDeep   = fmt.Errorf("arrays and objects are nested more than %d deep", maxDepth)
	errSyntax = errors.New("not JSON")
	errComma  = errors.New("trailing comma")
	errAfter  = errors.New("text after the value")
)

// A parser reads one JSON value, strictly and once from left to right.
type parser struct {
	text string
	at   int // where to read next; after an error, where the error is
	// flaw is the first mistake in a text that is JSON nevertheless: a name that an
	// object has twice, or a number out of range.
	flaw error
	path []string
}

// parse reads text, which is one JSON value and white space. The numbers of the value
// are json.Number.
func parse(text string) (any, *parser, error) {
	p := &parser{text: text}
	p.space()
	v, err := p.value(0)
	if err != nil {
		return nil, p, err
	}
	if p.space(); p.at < len(text) {
		return nil, p, errAfter
	}
	return v, p, nil
}

func (p *parser) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// next skips white space and returns the byte after it, 0 at the end.
func (p *parser) next() byte {
	p.space()
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// wrong returns the error at the current position.
func (p *parser) wrong() error {
	if p.at >= len(p.text) {
		return errEnds
	}
	return errSyntax
}

func (p *parser) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	switch c := p.next(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		return p.string()
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	for _, word := range []struct {
		text  string
		value any
	}{{"true", true}, {"false", false}, {"null", nil}} {
		if rest := p.text[p.at:]; strings.HasPrefix(rest, word.text) {
			p.at += len(word.text)
			return word.value, nil
		} else if rest != "" && strings.HasPrefix(word.text, rest) {
			p.at = len(p.text)
		}
	}
	return nil, p.wrong()
}

func (p *parser) object(depth int) (any, error) {
	p.at++
	if p.next() == '}' {
		p.at++
		return map[string]any{}, nil
	}
	var members map[string]any
	for {
		if p.next() != '"' {
			return nil, p.wrong()
		}
		name, err := p.string()
		if err != nil {
			return nil, err
		}
		if p.next() != ':' {
			return nil, p.wrong()
		}
		p.at++
		if members == nil {
			members = map[string]any{}
		}
		p.path = append(p.path, name)
		if _, twice := members[name]; twice {
			p.note("the name %q occurs twice", name)
		}
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		p.path = p.path[:len(p.path)-1]
		members[name] = value
		switch p.next() {
		case ',':
			if err := p.comma('}'); err != nil {
				return nil, err
			}
		case '}':
			p.at++
			return members, nil
		default:
			return nil, p.wrong()
		}
	}
}

func (p *parser) array(depth int) (any, error) {
	p.at++
	if p.next() == ']' {
		p.at++
		return []any{}, nil
	}
	var items []any
	for {
		p.path = append(p.path, strconv.Itoa(len(items)))
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		p.path = p.path[:len(p.path)-1]
		items = append(items, value)
		switch p.next() {
		case ',':
			if err := p.comma(']'); err != nil {
				return nil, err
			}
		case ']':
			p.at++
			return items, nil
		default:
			return nil, p.wrong()
		}
	}
}

// comma reads a comma, after which end must not follow.
func (p *parser) comma(end byte) error {
	comma := p.at
	p.at++
	if p.next() == end {
		p.at = comma
		return errComma
	}
	return nil
}

func (p *parser) string() (string, error) {
	begin := p.at
	plain := true
	for p.at++; p.at < len(p.text); p.at++ {
		switch c := p.text[p.at]; {
		case c == '"':
			p.at++
			if plain {
				return p.text[begin+1 : p.at-1], nil
			}
			var s string
			if json.Unmarshal([]byte(p.text[begin:p.at]), &s) != nil {
				p.at = begin
				return "", errSyntax
			}
			return s, nil
		case c == '\\':
			plain = false
			p.at++
		case c < ' ':
			return "", errSyntax
		}
	}
	p.at = len(p.text)
	return "", errEnds
}

func (p *parser) number() (any, error) {
	begin := p.at
	for p.at < len(p.text) && strings.IndexByte("+-.0123456789Ee", p.text[p.at]) >= 0 {
		p.at++
	}
	text := p.text[begin:p.at]
	if !json.Valid([]byte(text)) {
		if p.at == len(p.text) && json.Valid([]byte(text+"0")) {
			return nil, errEnds
		}
		p.at = begin
		return nil, errSyntax
	}
	if f, err := strconv.ParseFloat(text, 64); len(text) > maxNumber || err != nil || math.IsInf(f, 0) {
		p.note("the number %s is too large", shorten(text, 40))
	}
	return json.Number(text), nil
}

// note keeps the first flaw.
func (p *parser) note(format string, args ...any) {
	if p.flaw == nil {
		p.flaw = fmt.Errorf("at %s: %w", pointer(p.path), fmt.Errorf(format, args...))
	}
}

// pointer returns the JSON pointer of a path, and "the top" of an empty one.
func pointer(path []string) string {
	if len(path) == 0 {
		return "the top"
	}
	var b strings.Builder
	for _, name := range path {
		b.WriteString("/" + escape(name))
	}
	return shorten(b.String(), 200)
}

// shorten cuts text to about size bytes.
func shorten(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return strings.ToValidUTF8(text[:size], "") + "…"
}
