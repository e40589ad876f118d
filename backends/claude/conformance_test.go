package claude

import (
	"testing"

	"github.com/busdk/bus-agent/backendtest"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

func TestConformance(t *testing.T) {
	backendtest.Run(t, backendtest.Harness{Runtime: Runtime(), Env: []string{"IS_SANDBOX=1"}, Lines: backendtest.Lines{
		Session:    `{"type":"system","subtype":"init","session_id":"c396f6cb-5565-43a8-b1f9-2968d4cbd985","model":"m","uuid":"u{n}"}`,
		Text:       `{"type":"assistant","message":{"id":"m{n}","content":[{"type":"text","text":"{text}"}]},"session_id":"c396f6cb-5565-43a8-b1f9-2968d4cbd985","uuid":"u{n}"}`,
		ToolCall:   `{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}]},"session_id":"c396f6cb-5565-43a8-b1f9-2968d4cbd985"}`,
		ToolResult: `{"type":"user","message":{"content":[{"tool_use_id":"t","type":"tool_result","content":"{text}"}]},"session_id":"c396f6cb-5565-43a8-b1f9-2968d4cbd985"}`,
		Success:    `{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"c396f6cb-5565-43a8-b1f9-2968d4cbd985","uuid":"u{n}"}`,
		Failure:    `{"type":"result","subtype":"success","is_error":true,"result":"{text}","session_id":"c396f6cb-5565-43a8-b1f9-2968d4cbd985","uuid":"u{n}"}`,
		Retry:      `{"type":"system","subtype":"api_retry","attempt":1,"max_retries":3,"error_status":500,"error":"{text}","session_id":"c396f6cb-5565-43a8-b1f9-2968d4cbd985"}`,
		Unknown:    `{"type":"hologram","session_id":"c396f6cb-5565-43a8-b1f9-2968d4cbd985"}`,
	}})
}
