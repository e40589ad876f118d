package structured

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxWork bounds the subschemas that apply to one value in place, through every $ref: with
// each $ref their number can double. Those that apply again to the members and items of a
// value are bounded by maxSteps.
const maxWork = 1000

// drafts are the values of $schema.
var drafts = []string{
	"https://json-schema.org/draft/2020-12/schema",
	"http://json-schema.org/draft-07/schema#",
	"https://json-schema.org/draft-07/schema#",
}

// Keywords by the kind of their values.
var (
	oneSchema = []string{
		"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
	}
	listOfSchemas = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	namedSchemas  = []string{"$defs", "definitions", "dependencies", "dependentRequired", "dependentSchemas", "patternProperties", "properties"}
	counts        = []string{"maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength", "minProperties"}
	numbers       = []string{"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"}
	texts         = []string{"$comment", "$id", "$ref", "$schema", "description", "format", "pattern", "title"}
	listsOfTexts  = []string{"required"}
	booleans      = []string{"deprecated", "readOnly", "uniqueItems", "writeOnly"}
	refused       = []string{"$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"}
	typeNames     = []string{"array", "boolean", "integer", "null", "number", "object", "string"}
	sameValue     = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependencies", "dependentSchemas"}
)

// A checker checks a schema and makes the rules of its parts.
type checker struct {
	newest bool             // the draft is 2020-12
	parts  map[string]*part // by pointer
}

// A part is a subschema.
type part struct {
	at       string
	keywords map[string]any // nil for true and false
	never    bool           // it is false
	ref      string         // pointer of the part that $ref names
	rules    []rule
	tracks   bool // what was evaluated counts

	same []string // pointers of the parts that apply to the same value
	work int      // parts that apply to one value, this one included; 0: not counted yet
	busy bool     // being counted
}

// compile returns the root of a schema, or its first mistake with the pointer.
func compile(v any) (*part, error) {
	root, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("it is not a JSON object")
	}
	draft, named := root["$schema"]
	c := &checker{newest: !named || draft == drafts[0], parts: map[string]*part{}}
	if err := c.schema(v, "#"); err != nil {
		return nil, err
	}
	tracks := false
	places := slices.Sorted(maps.Keys(c.parts))
	for _, at := range places {
		p := c.parts[at]
		n, err := c.count(p)
		if err != nil {
			return nil, err
		}
		if n > maxWork {
			return nil, fmt.Errorf("at %s: more than %d schemas apply to one value", at, maxWork)
		}
		tracks = tracks || has(p.keywords, "unevaluatedItems") || has(p.keywords, "unevaluatedProperties")
	}
	for _, at := range places {
		p := c.parts[at]
		p.tracks = c.newest && tracks
		var err error
		if p.rules, err = c.rules(p); err != nil {
			return nil, err
		}
	}
	return c.parts["#"], nil
}

func (c *checker) schema(v any, at string) error {
	object, ok := v.(map[string]any)
	is, isBool := v.(bool)
	if !ok && !isBool {
		return fmt.Errorf("at %s: a schema is an object, true or false", at)
	}
	p := &part{at: at, keywords: object, never: isBool && !is}
	c.parts[at] = p
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if err := c.keyword(p, name, object[name], at+"/"+escape(name)); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) keyword(p *part, name string, v any, at string) error {
	wrong := func(want string) error { return fmt.Errorf("at %s: not %s", at, want) }
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
			names, ok := object[key].([]any)
			if name == "dependentRequired" && !ok {
				return fmt.Errorf("at %s: not a list of names", below)
			}
			if ok && (name == "dependencies" || name == "dependentRequired") {
				if !allTexts(names) {
					return fmt.Errorf("at %s: not a list of names", below)
				}
				continue
			}
			same(below)
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
	case name == "multipleOf":
		if n, ok := v.(json.Number); !ok || rational(n).Sign() <= 0 {
			return wrong("a number above 0")
		}
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

// text checks the keywords whose text has a meaning.
func (p *part) text(name, text, at string) error {
	switch name {
	case "$schema":
		if p.at != "#" || !slices.Contains(drafts, text) {
			return fmt.Errorf("at %s: %q is not a supported draft; write %s or %s", at, shorten(text, 100), drafts[0], drafts[1])
		}
	case "$id":
		if p.at != "#" {
			return fmt.Errorf("at %s: $id is allowed only at the top of the schema", at)
		}
	case "$ref":
		if text != "#" && !strings.HasPrefix(text, "#/") {
			return fmt.Errorf("at %s: %q is outside the schema, and nothing outside is read; write # or #/", at, shorten(text, 100))
		}
		if way, err := url.PathUnescape(text); err == nil {
			text = way
		}
		p.ref = text
		p.same = append(p.same, text)
	}
	return nil
}

// count returns how many parts apply to a value that p applies to, maxWork+1 at most.
func (c *checker) count(p *part) (int, error) {
	switch {
	case p.busy:
		return 0, fmt.Errorf("at %s: the schema refers to itself without end", p.at)
	case p.work > 0:
		return p.work, nil
	}
	p.busy = true
	n := 1
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
	p.work, p.busy = n, false
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
			return fmt.Errorf("at %s: %s is not a type; write one of %s", at, shorten(string(said), 40), strings.Join(typeNames, ", "))
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

// stringsOf returns the strings of a list that was checked; nil for anything else.
func stringsOf(v any) (list []string) {
	items, _ := v.([]any)
	for _, item := range items {
		list = append(list, item.(string))
	}
	return list
}

// count returns a whole number of 0 or more.
func count(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(string(n), 10, 32)
	return int(i), err == nil && i >= 0
}

func isCount(v any) bool {
	_, ok := count(v)
	return ok
}

func has(object map[string]any, name string) bool {
	_, ok := object[name]
	return ok
}

func compilePattern(pattern, at string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("at %s: %w", at, err)
	}
	return re, nil
}

// escape returns name as a segment of a JSON pointer.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
