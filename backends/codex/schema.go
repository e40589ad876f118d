package codex

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// schemaFile is where Codex finds the schema of its answer below its home. It
// takes a path alone, and no descriptor: the CLI is started by a program that
// passes none on.
const schemaFile = "answer-schema.json"

// schemaRules are those of the API, to which Codex passes a schema as a strict one:
// it refuses the whole request when a schema is not.
var schemaRules = registry.SchemaRules{
	Keywords: []string{
		"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf",
		"$ref", "$defs", "definitions", "title", "description", "format",
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
	},
	NotAtTop: []string{"anyOf", "enum", "const", "$ref"},
	Closed:   true,
	MaxBytes: 64 << 10,
	MaxDepth: 10,
}

// takesSchema reports whether Codex is given the schema as such. A local model is
// not: not every server of one heeds a schema. Neither is a Codex with a home of the
// caller's, which may name any other server.
func takesSchema(inv registry.Invocation) bool {
	_, ownHome := agent.LookupEnv(inv.Env, homeEnv)
	return inv.Variant == "" && !ownHome && schemaRules.Takes(inv.Schema)
}
