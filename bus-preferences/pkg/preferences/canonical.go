package preferences

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// maxDepth is the maximum nesting of a value. The size of an indented value grows
// with the square of its depth.
const maxDepth = 256

// canonical returns the JSON value in raw without white space, with sorted keys and
// with strings encoded uniformly. Numbers keep their digits. It returns an error for
// repeated keys, text that is not Unicode and more than depth levels of nesting.
// Errors quote only keys and single characters of raw.
func canonical(raw []byte, depth int) (json.RawMessage, error) {
	if err := json.Unmarshal(raw, new(json.RawMessage)); err != nil {
		return nil, withLine(raw, err)
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("not valid UTF-8")
	}
	if hasLoneSurrogate(raw) {
		return nil, errors.New(`a \u escape holds half of a surrogate pair`)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return appendValue(nil, dec, depth)
}

// withLine adds the line number to a syntax error of raw.
func withLine(raw []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	before := raw[:min(int(syntax.Offset), len(raw))]
	line := 1 + bytes.Count(before, []byte("\n"))
	return fmt.Errorf("line %d: %w", line, err)
}

// appendValue appends the next value of dec to dst. The value is valid JSON and may
// have depth levels of nesting.
func appendValue(dst []byte, dec *json.Decoder, depth int) ([]byte, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		switch {
		case depth == 0:
			return nil, errors.New("nested too deeply")
		case t == '[':
			return appendArray(dst, dec, depth-1)
		default:
			return appendObject(dst, dec, depth-1)
		}
	case string:
		return appendString(dst, t)
	case json.Number:
		return append(dst, t.String()...), nil
	case bool:
		return strconv.AppendBool(dst, t), nil
	default:
		return append(dst, "null"...), nil
	}
}

func appendArray(dst []byte, dec *json.Decoder, depth int) ([]byte, error) {
	dst = append(dst, '[')
	for i := 0; dec.More(); i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendValue(dst, dec, depth); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token()
	return append(dst, ']'), err
}

func appendObject(dst []byte, dec *json.Decoder, depth int) ([]byte, error) {
	members := make(map[string]json.RawMessage)
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key := token.(string)
		if _, ok := members[key]; ok {
			return nil, fmt.Errorf("key %q appears twice in one object", key)
		}
		if members[key], err = appendValue(nil, dec, depth); err != nil {
			return nil, err
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	return appendMembers(dst, members)
}

// appendMembers appends an object of canonical values.
func appendMembers(dst []byte, members map[string]json.RawMessage) ([]byte, error) {
	dst = append(dst, '{')
	for i, key := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendString(dst, key); err != nil {
			return nil, err
		}
		dst = append(append(dst, ':'), members[key]...)
	}
	return append(dst, '}'), nil
}

func appendString(dst []byte, s string) ([]byte, error) {
	raw, err := encodeString(s)
	return append(dst, raw...), err
}

// encodeString returns s as a JSON string without escaping HTML.
func encodeString(s string) (json.RawMessage, error) {
	if !utf8.ValidString(s) {
		return nil, errors.New("not valid UTF-8")
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// hasLoneSurrogate reports whether a \u escape in raw, which is valid JSON, is half
// of a surrogate pair. encoding/json replaces it silently.
func hasLoneSurrogate(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' { // occurs within strings only
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		unit := hexUnit(raw[i+1:])
		i += 4
		if unit < 0xd800 || unit > 0xdfff {
			continue
		}
		next := raw[i+1:]
		if unit > 0xdbff || len(next) < 6 || next[0] != '\\' || next[1] != 'u' {
			return true
		}
		if low := hexUnit(next[2:]); low < 0xdc00 || low > 0xdfff {
			return true
		}
		i += 6
	}
	return false
}

func hexUnit(digits []byte) uint64 {
	unit, _ := strconv.ParseUint(string(digits[:4]), 16, 16)
	return unit
}
