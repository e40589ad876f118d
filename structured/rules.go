package structured

import (
	"encoding/json"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// rules returns the rules of p, whose keywords are valid.
func (c *checker) rules(p *part) (rules []rule, err error) {
	s := p.keywords
	add := func(r rule) { rules = append(rules, r) }
	at := func(way string) *part { return c.parts[p.at+"/"+way] }
	if p.never {
		add(func(t *trial, _ any, at *place) { t.fail(at, "is not allowed") })
	}
	if p.ref != "" {
		target := c.parts[p.ref]
		add(func(t *trial, v any, at *place) { t.requireSame(t.apply(target, v, at, t.keep)) })
		if !c.newest {
			return rules, nil // the other keywords are ignored
		}
	}
	c.valueRules(s, add)
	for _, group := range []func(*part, func(string) *part, func(rule)) error{c.textRules, c.listRules, c.objectRules} {
		if err := group(p, at, add); err != nil {
			return nil, err
		}
	}
	c.logicRules(p, at, add)
	if c.newest {
		unevaluatedRules(at, add)
	}
	return rules, nil
}

// valueRules are for values of every type, and for numbers.
func (c *checker) valueRules(s map[string]any, add func(rule)) {
	if list, ok := s["type"]; ok {
		names, isList := list.([]any)
		if !isList {
			names = []any{list}
		}
		add(func(t *trial, v any, at *place) {
			if is := typeOf(v); !slices.Contains(names, any(is)) && (is != "integer" || !slices.Contains(names, any("number"))) {
				t.fail(at, "must be %s, not %s", types(names), kind{v})
			}
		})
	}
	options, ok := s["enum"].([]any)
	if value, isConst := s["const"]; isConst {
		add(oneOf([]any{value}))
	}
	if ok {
		add(oneOf(options))
	}
	for _, limit := range []struct {
		keyword, want string
		holds         func(order int) bool
	}{
		{"minimum", "at least", func(order int) bool { return order >= 0 }},
		{"exclusiveMinimum", "more than", func(order int) bool { return order > 0 }},
		{"maximum", "at most", func(order int) bool { return order <= 0 }},
		{"exclusiveMaximum", "less than", func(order int) bool { return order < 0 }},
	} {
		if n, ok := s[limit.keyword].(json.Number); ok {
			bound := rational(n)
			add(func(t *trial, v any, at *place) {
				if is, ok := v.(json.Number); ok && !limit.holds(rational(is).Cmp(bound)) {
					t.fail(at, "must be %s %s, not %s", limit.want, n, is)
				}
			})
		}
	}
	if n, ok := s["multipleOf"].(json.Number); ok {
		unit := rational(n)
		add(func(t *trial, v any, at *place) {
			if is, ok := v.(json.Number); ok && !new(big.Rat).Quo(rational(is), unit).IsInt() {
				t.fail(at, "must be a multiple of %s, not %s", n, is)
			}
		})
	}
}

// oneOf is the rule of enum and const.
func oneOf(options []any) rule {
	known := make(map[string]bool)
	for _, option := range options {
		known[canonical(option)] = true
	}
	return func(t *trial, v any, at *place) {
		switch {
		case known[canonical(v)]:
		case len(options) == 1:
			t.fail(at, "must be %s, not %s", value{options[0]}, is{v})
		default:
			t.fail(at, "must be one of %s, not %s", values(options), is{v})
		}
	}
}

// sizeRules are for the length of something.
func sizeRules(s map[string]any, least, most, what string, size func(v any) (int, bool), add func(rule)) {
	for _, limit := range []struct {
		keyword, want string
		holds         func(n, limit int) bool
	}{
		{least, "at least", func(n, limit int) bool { return n >= limit }},
		{most, "at most", func(n, limit int) bool { return n <= limit }},
	} {
		if bound, ok := count(s[limit.keyword]); ok {
			add(func(t *trial, v any, at *place) {
				if n, ok := size(v); ok && !limit.holds(n, bound) {
					t.fail(at, "must have %s %s, not %d", limit.want, plural(bound, what), n)
				}
			})
		}
	}
}

func (c *checker) textRules(p *part, _ func(string) *part, add func(rule)) error {
	sizeRules(p.keywords, "minLength", "maxLength", "character", func(v any) (int, bool) {
		text, ok := v.(string)
		return utf8.RuneCountInString(text), ok
	}, add)
	pattern, ok := p.keywords["pattern"].(string)
	if !ok {
		return nil
	}
	re, err := compilePattern(pattern, p.at+"/pattern")
	if err != nil {
		return err
	}
	add(func(t *trial, v any, at *place) {
		if text, ok := v.(string); ok && !re.MatchString(text) {
			t.fail(at, "must match the pattern %s, not %s", value{pattern}, kind{v})
		}
	})
	return nil
}

func (c *checker) listRules(p *part, at func(string) *part, add func(rule)) error {
	s := p.keywords
	items := func(v any) (int, bool) {
		list, ok := v.([]any)
		return len(list), ok
	}
	sizeRules(s, "minItems", "maxItems", "item", items, add)
	if s["uniqueItems"] == true {
		add(uniqueItems)
	}
	first, rest := "prefixItems", "items"
	if _, isList := s["items"].([]any); isList || !c.newest {
		first = "items"
		if isList {
			rest = "additionalItems"
		}
	}
	var each []*part
	if list, ok := s[first].([]any); ok {
		for i := range list {
			each = append(each, at(first+"/"+strconv.Itoa(i)))
		}
	}
	others := at(rest)
	if each != nil || others != nil {
		add(func(t *trial, v any, at *place) {
			list, _ := v.([]any)
			for i, item := range list {
				schema := others
				if i < len(each) {
					schema = each[i]
				}
				if schema != nil {
					t.seen.item(i)
					t.require(t.apply(schema, item, at.item(i), t.keep))
				}
			}
		})
	}
	if wanted := at("contains"); wanted != nil {
		least, most := 1, -1
		if c.newest {
			if n, ok := count(s["minContains"]); ok {
				least = n
			}
			if n, ok := count(s["maxContains"]); ok {
				most = n
			}
		}
		add(contains(wanted, least, most))
	}
	return nil
}

func uniqueItems(t *trial, v any, at *place) {
	list, _ := v.([]any)
	known := make(map[string]int, len(list))
	for i, item := range list {
		key := canonical(item)
		if first, twice := known[key]; twice {
			t.fail(at.item(i), "repeats item %d; the items must differ", first)
		} else {
			known[key] = i
		}
	}
}

// contains is the rule of contains, minContains and maxContains; most < 0 means no limit.
func contains(wanted *part, least, most int) rule {
	return func(t *trial, v any, at *place) {
		list, ok := v.([]any)
		if !ok {
			return
		}
		n := 0
		for i, item := range list {
			if !t.apply(wanted, item, at.item(i), 0).invalid {
				t.seen.item(i)
				n++
			}
		}
		if n < least {
			t.fail(at, "must have at least %s matching contains, not %d", plural(least, "item"), n)
		}
		if most >= 0 && n > most {
			t.fail(at, "must have at most %s matching contains, not %d", plural(most, "item"), n)
		}
	}
}

func (c *checker) objectRules(p *part, at func(string) *part, add func(rule)) error {
	s := p.keywords
	sizeRules(s, "minProperties", "maxProperties", "property", func(v any) (int, bool) {
		object, ok := v.(map[string]any)
		return len(object), ok
	}, add)
	for _, name := range stringsOf(s["required"]) {
		add(func(t *trial, v any, at *place) {
			if object, ok := v.(map[string]any); ok && !has(object, name) {
				t.fail(at, "lacks the property %s", value{name})
			}
		})
	}
	c.dependencyRules(s, at, add)
	named, _ := s["properties"].(map[string]any)
	patterns, _ := s["patternProperties"].(map[string]any)
	type match struct {
		re     *regexp.Regexp
		schema *part
	}
	var matches []match
	for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
		way := "patternProperties/" + escape(pattern)
		re, err := compilePattern(pattern, p.at+"/"+way)
		if err != nil {
			return err
		}
		matches = append(matches, match{re, at(way)})
	}
	var properties map[string]*part
	for name := range named {
		if properties == nil {
			properties = make(map[string]*part)
		}
		properties[name] = at("properties/" + escape(name))
	}
	others, names := at("additionalProperties"), at("propertyNames")
	if properties == nil && matches == nil && others == nil && names == nil {
		return nil
	}
	add(func(t *trial, v any, at *place) {
		object, _ := v.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			var schemas []*part
			if schema := properties[name]; schema != nil {
				schemas = append(schemas, schema)
			}
			for _, m := range matches {
				if m.re.MatchString(name) {
					schemas = append(schemas, m.schema)
				}
			}
			if len(schemas) == 0 && others != nil {
				schemas = append(schemas, others)
			}
			for _, schema := range schemas {
				t.seen.name(name)
				t.require(t.apply(schema, object[name], at.member(name), t.keep))
			}
			if names != nil {
				t.explain(at.member(name), "has a name that does not match propertyNames", []option{{names, ""}}, name)
			}
		}
	})
	return nil
}

// dependencyRules are for members that need others.
func (c *checker) dependencyRules(s map[string]any, at func(string) *part, add func(rule)) {
	keywords := []string{"dependentRequired", "dependentSchemas"}
	if !c.newest {
		keywords = []string{"dependencies"}
	}
	for _, keyword := range keywords {
		dependencies, _ := s[keyword].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(dependencies)) {
			schema := at(keyword + "/" + escape(name))
			needs := stringsOf(dependencies[name])
			add(func(t *trial, v any, at *place) {
				object, _ := v.(map[string]any)
				if !has(object, name) {
					return
				}
				for _, other := range needs {
					if !has(object, other) {
						t.fail(at, "lacks the property %s, which %s requires", value{other}, value{name})
					}
				}
				if schema != nil {
					t.requireSame(t.apply(schema, v, at, t.keep))
				}
			})
		}
	}
}

// logicRules are for schemas of the same value.
func (c *checker) logicRules(p *part, at func(string) *part, add func(rule)) {
	list := func(keyword string) (options []option) {
		schemas, _ := p.keywords[keyword].([]any)
		for i := range schemas {
			way := keyword + "/" + strconv.Itoa(i)
			options = append(options, option{at(way), way})
		}
		return options
	}
	for _, o := range list("allOf") {
		add(func(t *trial, v any, at *place) { t.requireSame(t.apply(o.schema, v, at, t.keep)) })
	}
	if options := list("anyOf"); options != nil {
		add(func(t *trial, v any, at *place) {
			t.explain(at, "matches no branch of anyOf", options, v)
		})
	}
	if options := list("oneOf"); options != nil {
		add(func(t *trial, v any, at *place) {
			if valid := t.explain(at, "matches no branch of oneOf", options, v); len(valid) > 1 {
				t.fail(at, "matches more than one branch of oneOf: %s", strings.Join(valid, ", "))
			}
		})
	}
	if schema := at("not"); schema != nil {
		add(func(t *trial, v any, at *place) {
			if !t.apply(schema, v, at, 0).invalid {
				t.fail(at, "must not match the schema of not")
			}
		})
	}
	if condition := at("if"); condition != nil {
		then, otherwise := at("then"), at("else")
		add(func(t *trial, v any, at *place) {
			tried := t.apply(condition, v, at, 0)
			branch := then
			if tried.invalid {
				branch = otherwise
			} else {
				t.see(tried)
			}
			if branch != nil {
				t.requireSame(t.apply(branch, v, at, t.keep))
			}
		})
	}
}

// unevaluatedRules come last: they depend on what the other rules have seen.
func unevaluatedRules(at func(string) *part, add func(rule)) {
	if schema := at("unevaluatedItems"); schema != nil {
		add(func(t *trial, v any, at *place) {
			list, _ := v.([]any)
			for i, item := range list {
				if !t.seen.items[i] {
					t.seen.item(i)
					t.require(t.apply(schema, item, at.item(i), t.keep))
				}
			}
		})
	}
	if schema := at("unevaluatedProperties"); schema != nil {
		add(func(t *trial, v any, at *place) {
			object, _ := v.(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(object)) {
				if !t.seen.names[name] {
					t.seen.name(name)
					t.require(t.apply(schema, object[name], at.member(name), t.keep))
				}
			}
		})
	}
}
