package claude_test

import (
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backends/claude"
	"github.com/busdk/bus-agent/formatters"
)

// TestVerdictsThatCannotBeRead ends a turn as failed where the line does not tell
// how it has ended, and as reported if only the rest is in another form.
func TestVerdictsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for line, failed := range map[string]bool{
		`{"type":"result","subtype":"success","is_error":false}`:                                              false,
		`{"type":"result","subtype":"success","is_error":"true"}`:                                             true,
		`{"type":"result","subtype":"success","is_error":false,"modelUsage":{"m":{"inputTokens":1e30}}}`:      false,
		`{"type":"result","subtype":"success","is_error":false,"modelUsage":{"m":{"outputTokens":"-1"}}}`:     false,
		`{"type":"result","subtype":"success","is_error":false,"total_cost_usd":"NaN"}`:                       false,
		`{"type":"result","subtype":"error_during_execution","is_error":true,"errors":7,"modelUsage":"many"}`: true,
	} {
		ends := 0
		stream := formatters.NewStream(claude.Runtime().Decoder(), func(e *agent.Event) error {
			if e.Kind == agent.KindResult {
				ends++
				if e.Failed != failed {
					t.Errorf("%s: failed is %v", line, e.Failed)
				}
			}
			return nil
		})
		stream.Write([]byte(line + "\n"))
		if ends != 1 {
			t.Errorf("%s: %d ends", line, ends)
		}
	}
}
