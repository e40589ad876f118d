package structured

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxWork bounds the steps that a value takes: the parts of a schema that apply to
	// it, those that a $ref stands for included, and what is large in them.
	maxWork = 1000
	// perStep is how many comparisons with a member of an enum, names that are looked
	// for and instructions of a regular expression, at one byte, take about as long as
	// a part.
	perStep = 5
)

// drafts are what $schema may say.
var drafts = []string{
	"https://json-schema.org/draft/2020-12/schema",
	"http://json-schema.org/draft-07/schema#",
	"https://json-schema.org/draft-07/schema#",
}

// Keywords by what their values are.
var (
	oneSchema = []string{
		"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
	}
	listOfSchemas  = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	namedSchemas   = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
	counts         = []string{"maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength", "minProperties"}
	numbers        = []string{"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"}
	texts          = []string{"$comment", "$id", "$ref", "$schema", "description", "format", "pattern", "title"}
	listsOfTexts   = []string{"required"}
	booleans       = []string{"deprecated", "readOnly", "uniqueItems", "writeOnly"}
	refused        = []string{"$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"}
	typeNames      = []string{"array", "boolean", "integer", "null", "number", "object", "string"}
	sameValue      = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependencies", "dependentSchemas"}
	errNotSchema   = errors.New("a schema is an object, true or false")
	errOwnIDInside = errors.New("$id is for the top of the schema alone")
)

// A checker looks at a schema before the validator does, which takes much of what
// is wrong for something it does not know.
type checker struct {
	newest bool // the draft is 2020-12
	// work is what applies to one value, by part of the schema; 0 while it is being
	// counted, so that a schema that refers to itself is found.
	work map[*part]int
	// parts are the subschemas by their pointer.
	parts map[string]*part
}

// A part is a schema in the schema.
type part struct {
	at     string
	object map[string]any // nil: true or false
	same   []string       // pointers of the parts that apply to the same value
	member []string       // pointers of those that may all apply to the same member of it
	small  int            // comparisons, names and instructions; see perStep
}

// check returns what is wrong with a schema, and where.
func check(v any) error {
	root, ok := v.(map[string]any)
	if !ok {
		return errors.New("it is not a JSON object")
	}
	draft, named := root["$schema"]
	c := &checker{newest: !named || draft == drafts[0], work: map[*part]int{}, parts: map[string]*part{}}
	if err := c.schema(v, "#"); err != nil {
		return err
	}
	for _, at := range slices.Sorted(maps.Keys(c.parts)) {
		p := c.parts[at]
		n, err := c.count(p)
		if err != nil {
			return err
		}
		if n > maxWork {
			return tooMuch(p.at)
		}
	}
	for _, at := range slices.Sorted(maps.Keys(c.parts)) {
		n := 0
		for _, member := range c.parts[at].member {
			n += c.work[c.parts[member]]
		}
		if n > maxWork {
			return tooMuch(at + "/patternProperties")
		}
	}
	return nil
}

func tooMuch(at string) error {
	return fmt.Errorf("at %s: it takes more than %d steps to check one value", at, maxWork)
}

func (c *checker) schema(v any, at string) error {
	p := &part{at: at}
	c.parts[at] = p
	switch v := v.(type) {
	case bool:
		return nil
	case map[string]any:
		p.object = v
	default:
		return fmt.Errorf("at %s: %w", at, errNotSchema)
	}
	for _, name := range slices.Sorted(maps.Keys(p.object)) {
		small := smallSteps(name, p.object[name])
		if small/perStep >= maxWork {
			return tooMuch(at + "/" + escape(name))
		}
		p.small += small
		if err := c.keyword(p, name, p.object[name], at+"/"+escape(name)); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) keyword(p *part, name string, v any, at string) error {
	wrong := func(want string) error { return fmt.Errorf("at %s: it is not %s", at, want) }
	list, isList := v.([]any)
	object, isObject := v.(map[string]any)
	same := func(at string) {
		if slices.Contains(sameValue, name) {
			p.same = append(p.same, at)
		}
	}
	switch {
	case slices.Contains(refused, name):
		return fmt.Errorf("at %s: %s is not supported; write $ref with # or #/", at, name)
	case c.newest && name == "items" && isList:
		return wrong("a schema; write prefixItems, or name draft-07 in $schema")
	case slices.Contains(listOfSchemas, name) && isList:
		for i, item := range list {
			below := at + "/" + strconv.Itoa(i)
			same(below)
			if err := c.schema(item, below); err != nil {
				return err
			}
		}
		return nil
	case slices.Contains(oneSchema, name):
		same(at)
		return c.schema(v, at)
	case slices.Contains(listOfSchemas, name):
		return wrong("a list of schemas")
	case slices.Contains(namedSchemas, name):
		if !isObject {
			return wrong("an object with schemas")
		}
		for _, key := range slices.Sorted(maps.Keys(object)) {
			below := at + "/" + escape(key)
			if names, ok := object[key].([]any); ok && name == "dependencies" {
				if !allTexts(names) {
					return fmt.Errorf("at %s: it is not a list of names", below)
				}
				continue
			}
			same(below)
			if name == "patternProperties" {
				p.member = append(p.member, below)
			}
			if err := c.schema(object[key], below); err != nil {
				return err
			}
		}
		return nil
	case name == "type":
		return checkType(v, at)
	case name == "enum" && !isList:
		return wrong("a list")
	case slices.Contains(counts, name) && !isCount(v):
		return wrong("a whole number of 0 or more")
	case slices.Contains(numbers, name):
		if _, ok := v.(json.Number); !ok {
			return wrong("a number")
		}
	case name == "multipleOf" && (!isCount(v) || v == json.Number("0")):
		// The validator divides floating point numbers, and 19.99 is no multiple of
		// 0.01 then.
		return wrong("a whole number above 0; no other is supported")
	case slices.Contains(listsOfTexts, name) && (!isList || !allTexts(list)):
		return wrong("a list of names")
	case slices.Contains(texts, name):
		text, ok := v.(string)
		if !ok {
			return wrong("a text")
		}
		return p.text(name, text, at)
	case slices.Contains(booleans, name):
		if _, ok := v.(bool); !ok {
			return wrong("true or false")
		}
	}
	return nil
}

// text checks a keyword that is a text and more than words.
func (p *part) text(name, text, at string) error {
	switch name {
	case "$schema":
		if p.at != "#" || !slices.Contains(drafts, text) {
			return fmt.Errorf("at %s: %q is none of the drafts that are known: %s and %s", at, shorten(text, 100), drafts[0], drafts[1])
		}
	case "$id":
		if p.at != "#" {
			return fmt.Errorf("at %s: %w", at, errOwnIDInside)
		}
	case "$ref":
		if text != "#" && !strings.HasPrefix(text, "#/") {
			return fmt.Errorf("at %s: %q is outside of the schema, and nothing outside is read; write # or #/", at, shorten(text, 100))
		}
		if way, err := url.PathUnescape(text); err == nil {
			text = way
		}
		p.same = append(p.same, text)
	}
	return nil
}

// smallSteps returns how many comparisons, names and instructions a keyword takes.
func smallSteps(name string, v any) (n int) {
	list, _ := v.([]any)
	object, _ := v.(map[string]any)
	text, _ := v.(string)
	switch name {
	case "enum", "const":
		return size(v)
	case "required":
		return len(list)
	case "properties":
		return len(object)
	case "pattern":
		return instructions(text)
	case "patternProperties":
		for pattern := range object {
			if n += instructions(pattern); n/perStep >= maxWork {
				break
			}
		}
	}
	return n
}

// size returns how many values v is, those in it included.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			n += size(member)
		}
	case []any:
		for _, item := range v {
			n += size(item)
		}
	}
	return n
}

// instructions returns how many a regular expression has; 0 when it is none, which
// the validator says.
func instructions(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

// count returns how many steps a value takes that p applies to.
func (c *checker) count(p *part) (int, error) {
	if n, begun := c.work[p]; begun {
		if n == 0 {
			return 0, fmt.Errorf("at %s: it refers to itself without end", p.at)
		}
		return n, nil
	}
	c.work[p] = 0
	n := 1 + p.small/perStep
	for _, at := range p.same {
		other, ok := c.parts[at]
		if !ok {
			return 0, fmt.Errorf("at %s: there is no schema at %q", p.at, shorten(at, 100))
		}
		m, err := c.count(other)
		if err != nil {
			return 0, err
		}
		n = min(n+m, maxWork+1)
	}
	c.work[p] = n
	return n, nil
}

func checkType(v any, at string) error {
	names, ok := v.([]any)
	if !ok {
		names = []any{v}
	}
	for _, name := range names {
		if text, ok := name.(string); !ok || !slices.Contains(typeNames, text) {
			said, _ := json.Marshal(name)
			return fmt.Errorf("at %s: %s is no type; there are %s", at, shorten(string(said), 40), strings.Join(typeNames, ", "))
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("at %s: the list is empty", at)
	}
	return nil
}

func allTexts(list []any) bool {
	return !slices.ContainsFunc(list, func(v any) bool { _, ok := v.(string); return !ok })
}

func isCount(v any) bool {
	n, ok := v.(json.Number)
	if !ok {
		return false
	}
	i, err := strconv.ParseInt(string(n), 10, 32)
	return err == nil && i >= 0
}

// escape returns name as it stands in a JSON pointer.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
