package runner

import (
	"bytes"
	"encoding/json"

	"github.com/busdk/bus-agent/agent"
)

// schemaIntro separates a prompt from the schema of its answer.
const schemaIntro = `

Your final answer must be exactly one JSON value that follows the JSON Schema below, and nothing else: no words before or after it and no code fence around it.

`

// checkSchema checks that the schema is a JSON object.
func (p *prepared) checkSchema() error {
	schema := bytes.TrimSpace(p.req.Schema)
	switch {
	case len(p.req.Schema) == 0:
		p.req.Schema = nil
		return nil
	case !json.Valid(schema) || schema[0] != '{':
		return agent.Usagef("the schema is not a JSON object; nothing was started")
	}
	p.req.Schema = schema
	return nil
}

// settleSchema puts the schema into the prompt unless the runtime's CLI takes it.
func (p *prepared) settleSchema() {
	if p.inv.Schema == nil || p.use.Options.Schema != nil && p.use.Options.Schema(p.inv) {
		return
	}
	p.inv.Prompt += schemaIntro + string(p.inv.Schema)
	p.inv.Schema = nil
}
