package structured

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Violations are the reasons why an answer does not follow a schema, each one printable
// line: all that were found, up to a limit, in the order of the places in the answer. A
// place is a JSON pointer.
type Violations []string

// Error returns all of them as one line.
func (v Violations) Error() string { return strings.Join(v, "; ") }

// Bounds of what is shown.
const (
	maxShown    = 50       // violations
	maxInBranch = 5        // violations of a branch of oneOf or anyOf
	maxBranches = 10       // of oneOf or anyOf
	maxOptions  = 20       // of an enum
	maxValue    = 60       // bytes of a value
	maxPointer  = 200      // bytes of a pointer
	maxWords    = 1500     // bytes of a violation
	maxList     = 8 << 10  // bytes after which no further violation is shown
	maxMasked   = 64 << 10 // bytes of a value in which secrets are masked before it is cut
)

// A place is the way to a value in an answer; nil is the whole answer.
type place struct {
	up    *place
	name  string // of a member
	index int    // of an item; -1 for a member
}

func (p *place) member(name string) *place { return &place{p, name, -1} }
func (p *place) item(i int) *place         { return &place{p, "", i} }

// way returns the places from the outermost one to p.
func (p *place) way() []*place {
	var list []*place
	for ; p != nil; p = p.up {
		list = append(list, p)
	}
	slices.Reverse(list)
	return list
}

// comparePlaces orders places: outer before inner ones, items by number, members by
// name.
func comparePlaces(a, b *place) int {
	return slices.CompareFunc(a.way(), b.way(), func(a, b *place) int {
		return cmp.Or(cmp.Compare(a.index, b.index), strings.Compare(a.name, b.name))
	})
}

// A violation is one reason why a value is not valid.
type violation struct {
	at       *place
	format   string
	args     []any // see printer.arg
	branches []branch
}

// A branch is a schema that would have been enough, and why it did not match.
type branch struct {
	label string
	tried *trial
}

// label returns how a branch is called: its title, its reference, or else its place.
func (p *part) label(place string) string {
	title, _ := p.keywords["title"].(string)
	return cmp.Or(title, p.ref, place)
}

// A printer writes violations, until the budget is over. Mask removes secrets.
type printer struct {
	mask   func(string) string
	budget *budget
}

// list returns the violations of t in order, without repetitions. The place is left out
// where it is top.
func (p printer) list(t *trial, top *place, most int) []string {
	if p.budget.isOver() {
		return nil
	}
	found := slices.Clone(t.violations)
	slices.SortStableFunc(found, func(a, b violation) int { return comparePlaces(a.at, b.at) })
	var lines []string
	more, size := t.more, 0
	here := 0 // the first line of the current place
	for i, v := range found {
		if len(lines) == most || size > maxList {
			more += len(found) - i
			break
		}
		if i > 0 && comparePlaces(found[i-1].at, v.at) != 0 {
			here = len(lines)
		}
		if line := p.line(v, top); !slices.Contains(lines[here:], line) {
			lines = append(lines, line)
			size += len(line)
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

func (p printer) line(v violation, top *place) string {
	args := make([]any, len(v.args))
	for i, arg := range v.args {
		args[i] = p.arg(arg)
	}
	text := fmt.Sprintf(v.format, args...)
	if v.at != top {
		text = p.pointer(v.at) + ": " + text
	}
	for i, b := range v.branches {
		if i == maxBranches {
			text += fmt.Sprintf(" (and %s more)", plural(len(v.branches)-i, "branch"))
			break
		}
		label := ""
		if b.label != "" {
			label = words(p.mask(b.label), maxValue) + ": "
		}
		text += " (" + label + strings.Join(p.list(b.tried, v.at, maxInBranch), "; ") + ")"
	}
	return words(p.mask(text), maxWords)
}

// pointer returns the JSON pointer of a place.
func (p printer) pointer(at *place) string {
	var b strings.Builder
	for _, one := range at.way() {
		b.WriteByte('/')
		if one.index >= 0 {
			b.WriteString(strconv.Itoa(one.index))
			continue
		}
		b.WriteString(words(escape(p.mask(one.name)), maxValue))
	}
	return shorten(b.String(), maxPointer)
}

// Arguments of a violation.
type (
	value  struct{ v any } // as JSON
	values []any           // each as JSON
	is     struct{ v any } // as JSON, or the type of an object or array
	kind   struct{ v any } // the same with the type of a string or number
	types  []any           // names of types
)

// arg returns an argument in its printed form. Values are cut after their secrets are
// masked.
func (p printer) arg(arg any) any {
	switch arg := arg.(type) {
	case value:
		return p.value(arg.v)
	case values:
		var list []string
		for i, v := range arg {
			if i == maxOptions {
				list = append(list, fmt.Sprintf("and %d more", len(arg)-i))
				break
			}
			list = append(list, p.value(v))
		}
		return strings.Join(list, ", ")
	case is:
		switch arg.v.(type) {
		case map[string]any, []any:
			return withArticle(typeOf(arg.v))
		}
		return p.value(arg.v)
	case kind:
		text := p.arg(is(arg))
		switch arg.v.(type) {
		case string:
			return fmt.Sprint("the string ", text)
		case json.Number:
			return fmt.Sprint("the number ", text)
		}
		return text
	case types:
		var list []string
		for _, name := range arg {
			list = append(list, withArticle(name.(string)))
		}
		return strings.Join(list, " or ")
	case json.Number:
		return shorten(string(arg), maxValue)
	}
	return arg
}

func (p printer) value(v any) string {
	if text, ok := v.(string); ok {
		return strconv.Quote(shorten(p.mask(shorten(text, maxMasked)), maxValue))
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // it was JSON
	return shorten(p.mask(strings.TrimSpace(b.String())), maxValue)
}

func withArticle(name string) string {
	switch name {
	case "null":
		return name
	case "array", "integer", "object":
		return "an " + name
	}
	return "a " + name
}

// plural returns "1 item" or "2 items".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	switch {
	case strings.HasSuffix(what, "y"):
		what = strings.TrimSuffix(what, "y") + "ies"
	case strings.HasSuffix(what, "ch"):
		what += "es"
	default:
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// typeOf returns the type of a JSON value. A number without a fraction is an integer.
func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case json.Number:
		if strings.Trim(string(v), "-0123456789") == "" || rational(v).IsInt() {
			return "integer"
		}
		return "number"
	}
	return "object"
}

// maxExponent bounds the exponents that are read exactly: the memory for others has no
// bound.
const maxExponent = 2 * maxNumber

// rational returns the exact value of n, or 0 if it is smaller than every 64-bit
// floating point number.
func rational(n json.Number) *big.Rat {
	if i := strings.IndexAny(string(n), "eE"); i >= 0 {
		if e, err := strconv.Atoi(string(n[i+1:])); err != nil || e < -maxExponent || e > maxExponent {
			return new(big.Rat)
		}
	}
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return new(big.Rat)
	}
	return r
}

// canonical returns v as JSON in a form that is the same for equal values.
func canonical(v any) string {
	var b strings.Builder
	writeCanonical(&b, v)
	return b.String()
}

func writeCanonical(b *strings.Builder, v any) {
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteByte(',')
			}
			writeCanonical(b, name)
			b.WriteByte(':')
			writeCanonical(b, v[name])
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			writeCanonical(b, item)
		}
		b.WriteByte(']')
	case json.Number:
		if text := string(v); strings.Trim(text, "123456789") == "" {
			b.WriteString(text)
			return
		}
		b.WriteString(rational(v).RatString())
	default:
		text, _ := json.Marshal(v) // a string, a boolean or null
		b.Write(text)
	}
}
