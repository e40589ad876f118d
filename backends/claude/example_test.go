package claude_test

import (
	"fmt"

	"github.com/busdk/bus-agent/backends/claude"
	"github.com/busdk/bus-agent/formatters"
)

func ExampleRuntime() {
	const output = `{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"All tests pass."}]},"session_id":"s","uuid":"u1"}
{"type":"result","subtype":"success","is_error":false,"result":"All tests pass.","session_id":"s","uuid":"u2"}
`
	text, err := formatters.Format(claude.Runtime(), []byte(output), nil)
	fmt.Print(text, err)
	// Output:
	// All tests pass.
	// <nil>
}
