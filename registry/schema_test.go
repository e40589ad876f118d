package registry_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/registry"
)

func TestSchemaRules(t *testing.T) {
	t.Parallel()
	keywords := []string{"type", "properties", "required", "additionalProperties", "items", "anyOf", "$ref", "$defs", "format", "enum"}
	open := registry.SchemaRules{Keywords: keywords, NotAtTop: []string{"anyOf"}, MaxBytes: 600, MaxDepth: 4}
	strict := open
	strict.Closed = true
	for name, c := range map[string]struct {
		schema       string
		open, strict bool
	}{
		"closed":                   {`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`, true, true},
		"another draft":            {`{"$schema":"urn:x","type":"object","properties":{},"required":[],"additionalProperties":false}`, true, true},
		"an optional property":     {`{"type":"object","properties":{"a":{},"b":{}},"required":["a"],"additionalProperties":false}`, true, false},
		"further properties":       {`{"type":"object","properties":{"a":{}},"required":["a"]}`, true, false},
		"properties of a type":     {`{"type":"object","properties":{},"required":[],"additionalProperties":{"type":"string"}}`, true, false},
		"closed inside of a list":  {`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{}},"required":["b"],"additionalProperties":false}}},"required":["a"],"additionalProperties":false}`, true, true},
		"open inside of a list":    {`{"type":"object","properties":{"a":{"type":"array","items":{"type":["object","null"]}}},"required":["a"],"additionalProperties":false}`, true, false},
		"open in a definition":     {`{"type":"object","properties":{},"required":[],"additionalProperties":false,"$defs":{"x":{"properties":{"y":{}}}}}`, true, false},
		"references inside":        {`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#"}},"required":["a","b"],"additionalProperties":false,"$defs":{"x":{"enum":[1]}}}`, true, true},
		"a reference outside":      {`{"type":"object","properties":{"a":{"$ref":"http://example.com"}}}`, false, false},
		"a keyword too many":       {`{"type":"object","properties":{"a":{"pattern":"x"}}}`, false, false},
		"a property named so":      {`{"type":"object","properties":{"pattern":{"type":"string"}},"required":["pattern"],"additionalProperties":false}`, true, true},
		"not at the top":           {`{"type":"object","anyOf":[{"type":"object"}]}`, false, false},
		"further down it is":       {`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`, true, true},
		"a format":                 {`{"type":"object","properties":{"a":{"format":"date-time"}},"required":["a"],"additionalProperties":false}`, true, true},
		"an unknown format":        {`{"type":"object","properties":{"a":{"format":"iban"}}}`, false, false},
		"a name that is not plain": {`{"type":"object","properties":{"a b":{}}}`, false, false},
		"an array":                 {`{"type":"array","items":{}}`, false, false},
		"no type":                  {`{"properties":{}}`, false, false},
		"several types":            {`{"type":["object","null"]}`, false, false},
		"a list of items":          {`{"type":"object","properties":{"a":{"items":[{}]}}}`, false, false},
		"too deep":                 {`{"type":"object","properties":{"a":{"items":{"items":{"items":{}}}}}}`, false, false},
		"too long":                 {`{"type":"object","properties":{"a":{"enum":["` + strings.Repeat("x", 600) + `"]}}}`, false, false},
		"true":                     {`true`, false, false},
		"no JSON":                  {`{`, false, false},
	} {
		if got := open.Takes(json.RawMessage(c.schema)); got != c.open {
			t.Errorf("%s: open rules say %v", name, got)
		}
		if got := strict.Takes(json.RawMessage(c.schema)); got != c.strict {
			t.Errorf("%s: strict rules say %v", name, got)
		}
	}
}

func TestBareSchema(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		"{\n \"z\": 1.50, \"$schema\": \"x\", \"a\": {\"$schema\": 1, \"<\": [ ]} }": `{"z":1.50,"a":{"$schema":1,"<":[]}}`,
		`{"$schema":"x"}`: `{}`,
		`{}`:              `{}`,
		`[]`:              ``,
		`{"a":`:           ``,
	} {
		if got := string(registry.BareSchema(json.RawMessage(schema))); got != want {
			t.Errorf("%s gives %s, want %s", schema, got, want)
		}
	}
}
