package cursor_test

import (
	"fmt"

	"github.com/busdk/bus-agent/backends/cursor"
	"github.com/busdk/bus-agent/formatters"
)

func ExampleRuntime() {
	const output = `{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"All tests pass."}]},"session_id":"s"}
{"type":"result","subtype":"success","is_error":false,"result":"All tests pass.","session_id":"s","request_id":"r"}
`
	text, err := formatters.Format(cursor.Runtime(), []byte(output), nil)
	fmt.Print(text, err)
	// Output:
	// All tests pass.
	// <nil>
}
