package structured_test

import (
	"fmt"

	"github.com/busdk/bus-agent/structured"
)

func ExampleSchema_Check() {
	schema, err := structured.Compile([]byte(`{"type":"object","properties":{"files":{"type":"integer"}},"required":["files"]}`))
	if err != nil {
		panic(err)
	}
	value, err := schema.Check("There are three.\n```json\n{\"files\": 3}\n```")
	fmt.Println(string(value), err)
	_, err = schema.Check(`{"files": "three"}`)
	fmt.Println(err)
	// Output:
	// {"files": 3} <nil>
	// /properties/files: type: three has type "string", want "integer"
}
