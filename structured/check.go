package structured

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxWork bounds the subschemas that apply to one value, through every $ref: with
// each $ref their number can double.
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
	namedSchemas  = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
	counts        = []string{"maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength", "minProperties"}
	numbers       = []string{"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"}
	texts         = []string{"$comment", "$id", "$ref", "$schema", "description", "format", "pattern", "title"}
	listsOfTexts  = []string{"required"}
	booleans      = []string{"deprecated", "readOnly", "uniqueItems", "writeOnly"}
	refused       = []string{"$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"}
	typeNames     = []string{"array", "boolean", "integer", "null", "number", "object", "string"}
	sameValue     = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependencies", "dependentSchemas"}
)

// A checker checks a schema before the validator does: that ignores many mistakes as
// keywords it does not know, and follows a $ref that leads to itself without end.
type checker struct {
	newest bool             // the draft is 2020-12
	parts  map[string]*part // by pointer
}

// A part is a subschema.
type part struct {
	at   string
	same []string // pointers of the parts that apply to the same value
	work int      // parts that apply to one value, this one included; 0: not counted yet
	busy bool     // being counted
}

// check returns the first mistake of a schema with its pointer.
func check(v any) error {
	root, ok := v.(map[string]any)
	if !ok {
		return errors.New("it is not a JSON object")
	}
	draft, named := root["$schema"]
	c := &checker{newest: !named || draft == drafts[0], parts: map[string]*part{}}
	if err := c.schema(v, "#"); err != nil {
		return err
	}
	for _, at := range slices.Sorted(maps.Keys(c.parts)) {
		n, err := c.count(c.parts[at])
		if err != nil {
			return err
		}
		if n > maxWork {
			return fmt.Errorf("at %s: more than %d schemas apply to one value", at, maxWork)
		}
	}
	return nil
}

func (c *checker) schema(v any, at string) error {
	p := &part{at: at}
	c.parts[at] = p
	object, ok := v.(map[string]any)
	if _, isBool := v.(bool); !ok && !isBool {
		return fmt.Errorf("at %s: a schema is an object, true or false", at)
	}
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
			if names, ok := object[key].([]any); ok && name == "dependencies" {
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
	case name == "multipleOf" && (!isCount(v) || v == json.Number("0")):
		// The validator divides floating point numbers: 19.99 is not a multiple of
		// 0.01 then.
		return wrong("a whole number above 0; only those are supported")
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

func isCount(v any) bool {
	n, ok := v.(json.Number)
	if !ok {
		return false
	}
	i, err := strconv.ParseInt(string(n), 10, 32)
	return err == nil && i >= 0
}

// escape returns name as a segment of a JSON pointer.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
