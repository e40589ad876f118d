package gitenv

import (
	"bytes"
	"errors"
	"strings"
)

// An entry is one variable of a file, in the order of the file.
type entry struct {
	key   string // section and name in lower case, the subsection as written
	value string
	bare  bool // there was no "=": the value is "true"
}

// split returns the parts of a key, as git splits it.
func split(key string) (section, sub, name string) {
	first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if first < 0 {
		return key, "", ""
	}
	if first < last {
		sub = key[first+1 : last]
	}
	return key[:first], sub, key[last+1:]
}

var errSyntax = errors.New("it is not valid git configuration")

// parse reads a configuration file as git does. What git does not read is an error.
func parse(data []byte) ([]entry, error) {
	p := &parser{rest: bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))}
	if bytes.IndexByte(data, 0) >= 0 {
		return nil, errSyntax
	}
	var entries []entry
	section := ""
	for len(p.rest) > 0 {
		switch c := p.next(); {
		case isSpace(c):
		case c == '#' || c == ';':
			p.skipLine()
		case c == '[':
			var ok bool
			if section, ok = p.section(); !ok {
				return nil, errSyntax
			}
		case isLetter(c) && section != "":
			e, ok := p.variable(c)
			if !ok {
				return nil, errSyntax
			}
			e.key = section + "." + e.key
			entries = append(entries, e)
		default:
			return nil, errSyntax
		}
	}
	return entries, nil
}

// A parser yields the bytes of a file, each CR LF as LF, and LF at the end.
type parser struct{ rest []byte }

func (p *parser) next() byte {
	if len(p.rest) == 0 {
		return '\n'
	}
	c := p.rest[0]
	if c == '\r' && len(p.rest) > 1 && p.rest[1] == '\n' {
		p.rest, c = p.rest[1:], '\n'
	}
	p.rest = p.rest[1:]
	return c
}

func (p *parser) skipLine() {
	for len(p.rest) > 0 && p.next() != '\n' {
	}
}

// section reads what follows "[".
func (p *parser) section() (string, bool) {
	var name []byte
	for {
		switch c := p.next(); {
		case c == ']':
			return string(name), len(name) > 0
		case c == '\n':
			return "", false
		case isSpace(c):
			return p.subsection(name)
		case isKey(c) || c == '.':
			name = append(name, lower(c))
		default:
			return "", false
		}
	}
}

func (p *parser) subsection(name []byte) (string, bool) {
	c := p.next()
	for c != '\n' && isSpace(c) {
		c = p.next()
	}
	if c != '"' || len(name) == 0 {
		return "", false
	}
	name = append(name, '.')
	for {
		switch c := p.next(); c {
		case '\n':
			return "", false
		case '"':
			return string(name), p.next() == ']'
		case '\\':
			if c = p.next(); c == '\n' {
				return "", false
			}
			name = append(name, c)
		default:
			name = append(name, c)
		}
	}
}

// variable reads a variable whose name begins with c.
func (p *parser) variable(c byte) (entry, bool) {
	var name []byte
	for ; isKey(c); c = p.next() {
		name = append(name, lower(c))
	}
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	switch c {
	case '\n':
		return entry{key: string(name), value: "true", bare: true}, true
	case '=':
		value, ok := p.value()
		return entry{key: string(name), value: value}, ok
	}
	return entry{}, false
}

func (p *parser) value() (string, bool) {
	var value []byte
	kept := 0 // length without spaces at the end
	quoted, comment := false, false
	for {
		c := p.next()
		switch {
		case c == '\n':
			return string(value[:kept]), !quoted
		case comment:
			continue
		case isSpace(c) && !quoted:
			if len(value) > 0 {
				value = append(value, c)
			}
			continue
		case !quoted && (c == ';' || c == '#'):
			comment = true
			continue
		case c == '"':
			quoted = !quoted
			kept = len(value)
			continue
		case c == '\\':
			switch c = p.next(); c {
			case '\n':
				continue
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			case 'n':
				c = '\n'
			case '\\', '"':
			default:
				return "", false
			}
		}
		value = append(value, c)
		kept = len(value)
	}
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'
}
func isLetter(c byte) bool { return 'a' <= lower(c) && lower(c) <= 'z' }
func isKey(c byte) bool    { return isLetter(c) || '0' <= c && c <= '9' || c == '-' }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
