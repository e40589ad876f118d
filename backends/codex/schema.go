package codex

import (
	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

// schemaFile is the file with the schema of the answer, below the home. A descriptor
// does not work: the program that starts the CLI does not pass it on.
const schemaFile = "answer-schema.json"

// schemaRules are those of strict mode, in which Codex passes a schema to the API. The
// API refuses the whole request if a schema breaks them.
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

// takesSchema reports whether the schema is passed to Codex. Servers of local models
// may ignore a schema, and a CODEX_HOME set by the caller may name any server, so both
// get it in the prompt.
func takesSchema(inv registry.Invocation) bool {
	_, ownHome := agent.LookupEnv(inv.Env, homeEnv)
	return inv.Variant == "" && !ownHome && schemaRules.Takes(inv.Schema)
}
