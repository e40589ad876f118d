package structured_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/runner"
	"github.com/busdk/bus-agent/structured"
)

func ExampleEnforcer() {
	schema, err := structured.Compile([]byte(`{"type":"object","properties":{"files":{"type":"integer"}},"required":["files"]}`))
	if err != nil {
		log.Fatal(err)
	}
	e := structured.Enforcer{Next: new(runner.Runner), Schema: schema}
	result, err := e.Run(context.Background(), agent.Request{Runtime: "codex", Prompt: "Count the Go files."}, agent.Output{})
	if invalid, ok := errors.AsType[*structured.InvalidError](err); ok {
		log.Fatalf("codex answered %q: %s", result.Text, invalid.Violations)
	}
	if err != nil {
		log.Fatal(err)
	}
	var answer struct{ Files int }
	if err := json.Unmarshal([]byte(result.Text), &answer); err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Files)
}

func ExampleSchema_Check() {
	schema, err := structured.Compile([]byte(`{"type":"object","properties":{"files":{"type":"integer"}},"required":["files"]}`))
	if err != nil {
		log.Fatal(err)
	}
	value, err := schema.Check("There are three.\n```json\n{\"files\": 3}\n```")
	fmt.Println(string(value), err)
	_, err = schema.Check(`{"files": "three"}`)
	fmt.Println(err)
	// Output:
	// {"files": 3} <nil>
	// /files: must be an integer, not the string "three"
}
