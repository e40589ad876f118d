package instructions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// settings is a parsed settings file.
type settings struct {
	data []byte
	v    hujson.Value // an object
}

func parseSettings(data []byte) (*settings, error) {
	if tooDeep(data) {
		return nil, fmt.Errorf("%w: more than %d values in each other", ErrUnparsable, maxNesting)
	}
	v, err := hujson.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnparsable, err)
	}
	if _, ok := v.Value.(*hujson.Object); !ok {
		return nil, fmt.Errorf("%w: not an object", ErrUnparsable)
	}
	return &settings{data: data, v: v}, nil
}

// maxNesting bounds the objects and arrays in each other: the parser is recursive.
const maxNesting = 1000

// tooDeep reports whether parsing data would exceed maxNesting.
func tooDeep(data []byte) bool {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '[', '{':
			if depth++; depth > maxNesting {
				return true
			}
		case ']', '}':
			depth--
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			end := "\n"
			if bytes.HasPrefix(data[i:], []byte("/*")) {
				i, end = i+2, "*/"
			}
			n := bytes.Index(data[i:], []byte(end))
			if n < 0 {
				return false // nothing follows the comment
			}
			i += n + len(end) - 1
		}
	}
	return false
}

func (t *settings) top() *hujson.Object { return t.v.Value.(*hujson.Object) }

// memberIndex returns the index of a member, or -1. As in JSON.parse, the last of
// several with one name counts.
func memberIndex(o *hujson.Object, name string) int {
	for i := range slices.Backward(o.Members) {
		if o.Members[i].Name.Value.(hujson.Literal).String() == name {
			return i
		}
	}
	return -1
}

// lookup returns the value at keys below object. If it is missing, value is nil, in is
// the innermost existing object, and missing are the keys below that.
func lookup(object *hujson.Value, keys []string) (value, in *hujson.Value, missing []string, err error) {
	in = object
	for i, key := range keys {
		o, ok := in.Value.(*hujson.Object)
		if !ok {
			return nil, nil, nil, fmt.Errorf("%w: %s is not an object", ErrUnparsable, strings.Join(keys[:i], "."))
		}
		m := memberIndex(o, key)
		if m < 0 {
			return nil, in, keys[i:], nil
		}
		value, in = &o.Members[m].Value, &o.Members[m].Value
	}
	return value, nil, nil, nil
}

// has reports whether the list at keys has value.
func (t *settings) has(keys []string, value string) (bool, error) {
	v, _, _, err := lookup(&t.v, keys)
	if err != nil || v == nil {
		return false, err
	}
	switch list := v.Value.(type) {
	case *hujson.Array:
		return indexString(list, value) >= 0, nil
	case hujson.Literal:
		if list.Kind() == '"' {
			return list.String() == value, nil
		}
	}
	return false, fmt.Errorf("%w: %s is neither a string nor a list", ErrUnparsable, strings.Join(keys, "."))
}

// indexString returns the last index of the string s, or -1.
func indexString(list *hujson.Array, s string) int {
	for i := range slices.Backward(list.Elements) {
		l, ok := list.Elements[i].Value.(hujson.Literal)
		if ok && l.Kind() == '"' && l.String() == s {
			return i
		}
	}
	return -1
}

// An editor adds bytes to settings and remembers where.
type editor struct {
	data  []byte
	added []span // in order, not touching each other
}

type span struct{ off, n int }

func (e *editor) insert(off int, text string) {
	e.data = slices.Insert(e.data, off, []byte(text)...)
	e.added = addSpan(e.added, span{off, len(text)})
}

// addSpan returns spans after the bytes of s were inserted.
func addSpan(spans []span, s span) []span {
	var before, after []span
	at, inserted := s.off, s.n
	for _, old := range spans {
		switch {
		case old.off+old.n < at:
			before = append(before, old)
		case old.off > at:
			after = append(after, span{old.off + inserted, old.n})
		default: // inside of old or touching it
			s.off = old.off
			s.n += old.n
		}
	}
	return append(append(before, s), after...)
}

// add adds one string to its list and records the change in entry.
func (e *editor) add(entry *entry) error {
	t, err := parseSettings(e.data)
	if err != nil {
		return err
	}
	if has, err := t.has(entry.Keys, entry.Value); err != nil || has {
		return err
	}
	value, in, missing, err := lookup(&t.v, entry.Keys)
	if err != nil {
		return err
	}
	entry.Created, entry.Wrapped = len(missing), false
	if value == nil {
		e.append(sequenceOf(in), quote(missing[0])+": "+entry.list(missing[1:]))
		return nil
	}
	if _, ok := value.Value.(*hujson.Array); ok {
		e.append(sequenceOf(value), quote(entry.Value))
		return nil
	}
	entry.Wrapped = true
	e.insert(value.EndOffset, ", "+quote(entry.Value)+"]")
	e.insert(value.StartOffset, "[")
	return nil
}

// list returns the list for an absent value, within objects for keys.
func (e *entry) list(keys []string) string {
	words := make([]string, 0, len(e.Defaults)+1)
	for _, word := range append(slices.Clone(e.Defaults), e.Value) {
		words = append(words, quote(word))
	}
	text := "[" + strings.Join(words, ", ") + "]"
	for _, key := range slices.Backward(keys) {
		text = "{" + quote(key) + ": " + text + "}"
	}
	return text
}

func quote(s string) string { return string(hujson.String(s)) }

// addMark adds the mark at the end of the file.
func (e *editor) addMark(mark ownedMark) error {
	t, err := parseSettings(e.data)
	if err != nil {
		return err
	}
	at, lead := e.separate(sequenceOf(&t.v))
	e.insert(at, lead)
	var added []byte
	for _, s := range e.added {
		added = append(added, e.data[s.off:s.off+s.n]...)
		mark.At = append(mark.At, s.off, s.n)
	}
	mark.Added = digest(added)
	// The mark ends the last added span, so its length need not be stored.
	mark.At = mark.At[:len(mark.At)-1]
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(mark); err != nil {
		return err
	}
	e.insert(at+len(lead), quote(ownedKey)+": "+strings.TrimSuffix(b.String(), "\n"))
	return nil
}

// A sequence is an object or an array to which elements are added.
type sequence struct {
	empty    bool
	comma    bool         // there is a comma after the last element
	last     int          // where the last element ends
	first    hujson.Extra // before the first element
	tail     hujson.Extra // before the closing bracket
	closeOff int          // where the closing bracket is
}

func sequenceOf(v *hujson.Value) sequence {
	s := sequence{closeOff: v.EndOffset - 1, empty: true}
	var last hujson.Value
	switch c := v.Value.(type) {
	case *hujson.Object:
		s.tail = c.AfterExtra
		if n := len(c.Members); n > 0 {
			s.empty, s.first, last = false, c.Members[0].Name.BeforeExtra, c.Members[n-1].Value
		}
	case *hujson.Array:
		s.tail = c.AfterExtra
		if n := len(c.Elements); n > 0 {
			s.empty, s.first, last = false, c.Elements[0].BeforeExtra, c.Elements[n-1]
		}
	}
	s.last, s.comma = last.EndOffset, last.AfterExtra != nil
	return s
}

func (e *editor) append(s sequence, text string) {
	at, lead := e.separate(s)
	e.insert(at, lead+text)
}

// separate adds a comma after the last element if there is none, and returns the
// position of the next one and the white space before it.
func (e *editor) separate(s sequence) (at int, lead string) {
	at, lead = s.closeOff, " "
	first := s.first
	if s.empty {
		first, lead = s.tail, ""
	}
	if i := bytes.LastIndexByte(first, '\n'); i >= 0 {
		lead = lineBreak(first, i) + blanks(first[i+1:])
		if s.empty {
			lead += "  "
		}
		at -= len(lastLine(s.tail))
	}
	if !s.empty && !s.comma {
		e.insert(s.last, ",")
		at++
	}
	return at, lead
}

// lastLine returns the line break and blanks before a closing bracket, so that it
// keeps its line; empty if anything else is before it.
func lastLine(tail []byte) []byte {
	i := bytes.LastIndexByte(tail, '\n')
	if i < 0 || len(blanks(tail[i+1:])) < len(tail)-i-1 {
		return nil
	}
	return tail[i+1-len(lineBreak(tail, i)):]
}

func lineBreak(extra []byte, i int) string {
	if i > 0 && extra[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

func blanks(b []byte) string { return string(b[:len(b)-len(bytes.TrimLeft(b, " \t"))]) }
