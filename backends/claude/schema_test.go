package claude

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/registry"
)

func TestTakesSchema(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]bool{
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"string","minLength":1,"default":"x"}}}`: true,
		`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"$ref":"#/$defs/b"}]}},"$defs":{"b":{"const":1}}}`:                           true,
		`{"type":"array","items":{"type":"string"}}`:                                          false,
		`{"type":"object","oneOf":[{"required":["a"]}]}`:                                      false,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"\\-"}}}`:              false,
		`{"type":"object","properties":{"a":{"prefixItems":[]}}}`:                             false,
		`{"type":"object","x-mine":1}`:                                                        false,
		`{"type":"object","description":"` + strings.Repeat("x", schemaRules.MaxBytes) + `"}`: false,
	} {
		if got := takesSchema(registry.Invocation{Schema: json.RawMessage(schema)}); got != want {
			t.Errorf("%.100s: %v", schema, got)
		}
	}
}

func TestSchemaIsOneArgument(t *testing.T) {
	t.Parallel()
	got, err := command(registry.Invocation{
		Prompt: "p", Access: agent.AccessRead, Args: []string{"--mine"},
		Schema: json.RawMessage("{\"$schema\": \"x\",\n \"type\": \"object\"}"),
	})
	if err != nil || !slices.Equal(got.Args[len(got.Args)-2:], []string{`--json-schema={"type":"object"}`, "--mine"}) {
		t.Errorf("%q, %v", got.Args, err)
	}
}
