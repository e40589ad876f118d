package claude

import (
	"github.com/busdk/bus-agent/registry"
)

// schemaRules are the schemas that both Claude Code and the API accept. The CLI checks
// a schema strictly as draft-07 and makes it the input of a tool, which must be an
// object. The schema is one argument, so its length is bounded.
var schemaRules = registry.SchemaRules{
	Keywords: []string{
		"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "oneOf", "allOf", "not",
		"$ref", "$defs", "definitions", "title", "description", "default", "examples", "$comment", "format",
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems",
		"minLength", "maxLength", "minProperties", "maxProperties",
	},
	NotAtTop: []string{"anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref"},
	MaxBytes: 64 << 10,
}

// takesSchema reports whether the schema is passed to Claude Code.
func takesSchema(inv registry.Invocation) bool { return schemaRules.Takes(inv.Schema) }
