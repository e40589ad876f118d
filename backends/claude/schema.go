package claude

import (
	"github.com/busdk/bus-agent/registry"
)

// schemaRules are what both Claude Code and the API take: the CLI checks a schema
// as one of draft-07, strictly, and makes a tool of it, which has to be given an
// object. It is one argument of the CLI, which bounds its length.
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

// takesSchema reports whether Claude Code is given the schema as such.
func takesSchema(inv registry.Invocation) bool { return schemaRules.Takes(inv.Schema) }
