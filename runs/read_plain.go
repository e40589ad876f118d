package runs

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// parsePlain parses the YAML that writers of records nearly always write: a key and a
// value on each line, and below a key the same once more or a list of texts. It makes a
// list of thousands of runs five times as fast as the YAML library.
//
// It reports false if the library might read the text differently; the Info is invalid
// then.
func parsePlain(text string) (info Info, ok bool) {
	p := plainParser{rest: text}
	return info, p.mapping(reflect.ValueOf(&info).Elem(), infoKeys(), "") && p.rest == ""
}

var (
	infoKeys  = sync.OnceValue(func() map[string]int { return keysOf(reflect.TypeFor[Info]()) })
	usageKeys = sync.OnceValue(func() map[string]int { return keysOf(reflect.TypeFor[Usage]()) })
)

// keysOf returns the positions of the fields of a struct by their keys in YAML.
func keysOf(t reflect.Type) map[string]int {
	keys := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		key, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		keys[key] = i
	}
	return keys
}

type plainParser struct {
	rest string // from the start of a line
}

// mapping reads lines of a key and a value, all with the same indent, into a
// struct. It ends before a line with less.
func (p *plainParser) mapping(into reflect.Value, keys map[string]int, indent string) bool {
	var seen uint64
	for p.rest != "" {
		line, ok := p.line(indent)
		if !ok {
			return indent != "" && p.rest[0] != ' '
		}
		key, value, found := strings.Cut(line, ":")
		i, known := keys[key]
		if !found || !known || seen>>i&1 != 0 {
			return false
		}
		seen |= 1 << i
		if value == "" {
			ok = indent == "" && p.nested(into.Field(i).Addr().Interface())
		} else {
			ok = value[0] == ' ' && scalar(into.Field(i).Addr().Interface(), value[1:])
		}
		if !ok {
			return false
		}
	}
	return seen != 0
}

// line takes the next line if it has exactly this indent.
func (p *plainParser) line(indent string) (string, bool) {
	line, rest, ended := strings.Cut(p.rest, "\n")
	if !ended || !strings.HasPrefix(line, indent) {
		return "", false
	}
	line = line[len(indent):]
	if line == "" || line[0] == ' ' {
		return "", false
	}
	p.rest = rest
	return line, true
}

// nested reads the lines below a key.
func (p *plainParser) nested(into any) bool {
	indent := p.rest[:len(p.rest)-len(strings.TrimLeft(p.rest, " "))]
	if indent == "" {
		return false
	}
	switch into := into.(type) {
	case **Usage:
		*into = new(Usage)
		return p.mapping(reflect.ValueOf(*into).Elem(), usageKeys(), indent)
	case *[]string:
		for strings.HasPrefix(p.rest, " ") {
			line, ok := p.line(indent)
			item, isItem := strings.CutPrefix(line, "- ")
			var text string
			if !ok || !isItem || !textScalar(&text, item) {
				return false
			}
			*into = append(*into, text)
		}
		return true
	}
	return false
}

// scalar reads a value into a field.
func scalar(into any, value string) bool {
	switch into := into.(type) {
	case *string:
		return textScalar(into, value)
	case *Status:
		return textScalar((*string)(into), value)
	case *int:
		n, ok := integer(value)
		*into = int(n)
		return ok && int64(int(n)) == n
	case *int64:
		n, ok := integer(value)
		*into = n
		return ok
	case *bool:
		*into = value == "true"
		return value == "true" || value == "false"
	case *time.Time:
		return moment(into, value)
	case **float64:
		f, ok := number(value)
		*into = &f
		return ok
	}
	return false
}

// integer reads decimal digits that YAML reads as such.
func integer(value string) (int64, bool) {
	digits := strings.TrimPrefix(value, "-")
	if !allDigits(digits) || len(digits) > 18 || digits[0] == '0' && value != "0" {
		return 0, false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return n, err == nil
}

// number reads digits with a decimal point or without.
func number(value string) (float64, bool) {
	whole, fraction, point := strings.Cut(value, ".")
	if _, ok := integer(whole); !ok || point && !allDigits(fraction) || whole[0] == '-' || len(value) > 40 {
		return 0, false
	}
	f, err := strconv.ParseFloat(value, 64)
	return f, err == nil
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// moment reads a time in UTC.
func moment(into *time.Time, value string) bool {
	const shortest = len("2006-01-02T15:04:05Z")
	if len(value) < shortest || value[10] != 'T' || value[len(value)-1] != 'Z' || strings.Contains(value, ",") {
		return false
	}
	t, err := time.Parse(time.RFC3339Nano, value)
	*into = t
	return err == nil
}

// textScalar reads a plain or quoted text without escapes.
func textScalar(into *string, value string) bool {
	*into = value
	if value == "" || !printable(value) {
		return false
	}
	switch first := value[0]; {
	case first == '"' || first == '\'':
		return quotedText(into, value)
	case first >= utf8.RuneSelf, first >= 'a' && first <= 'z', first >= 'A' && first <= 'Z', first >= '0' && first <= '9',
		strings.IndexByte("/._($+;", first) >= 0:
		return plainText(value)
	}
	return false
}

func quotedText(into *string, value string) bool {
	inner, ok := strings.CutSuffix(value[1:], value[:1])
	if !ok {
		return false
	}
	*into = inner
	if value[0] == '"' {
		return !strings.ContainsAny(inner, `"\`)
	}
	if strings.Contains(inner, "'") {
		*into = strings.ReplaceAll(inner, "''", "'")
		return !strings.Contains(strings.ReplaceAll(inner, "''", ""), "'")
	}
	return true
}

// plainText reports whether YAML reads a text without quotes as that text.
func plainText(value string) bool {
	switch value {
	case "null", "Null", "NULL":
		return false
	}
	last := value[len(value)-1]
	return last != ' ' && last != ':' && !strings.Contains(value, ": ") && !strings.Contains(value, " #")
}

// printable reports whether a text has only characters that YAML reads as they are.
func printable(value string) bool {
	for i, r := range value {
		switch {
		case r >= ' ' && r <= '~':
		case r < 0xa1, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
			return false
		case r == utf8.RuneError:
			if !strings.HasPrefix(value[i:], "\ufffd") {
				return false
			}
		}
	}
	return true
}
