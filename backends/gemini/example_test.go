package gemini_test

import (
	"fmt"

	"github.com/busdk/bus-agent/backends/gemini"
	"github.com/busdk/bus-agent/formatters"
)

func ExampleRuntime() {
	const output = `{"type":"message","timestamp":"t","role":"assistant","content":"All tests ","delta":true}
{"type":"message","timestamp":"t","role":"assistant","content":"pass.","delta":true}
{"type":"result","timestamp":"t","status":"success","stats":{}}
`
	text, err := formatters.Format(gemini.Runtime(), []byte(output), nil)
	fmt.Print(text, err)
	// Output:
	// All tests pass.
	// <nil>
}
