package cursor

import (
	"testing"

	"github.com/busdk/bus-agent/backendtest"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

func TestConformance(t *testing.T) {
	backendtest.Run(t, backendtest.Harness{Runtime: Runtime(), NativeInstructions: true, Lines: backendtest.Lines{
		Session:    `{"type":"system","subtype":"init","apiKeySource":"login","session_id":"c6b62c6f","model":"m"}`,
		Text:       `{"type":"assistant","message":{"content":[{"type":"text","text":"{text}"}]},"session_id":"c6b62c6f"}`,
		ToolCall:   `{"type":"tool_call","subtype":"started","call_id":"t","tool_call":{"shellToolCall":{"args":{}}},"session_id":"c6b62c6f"}`,
		ToolResult: `{"type":"tool_call","subtype":"completed","call_id":"t","tool_call":{"shellToolCall":{"result":{"success":{"stdout":"{text}"}}}}}`,
		Success:    `{"type":"result","subtype":"success","is_error":false,"result":"","session_id":"c6b62c6f"}`,
		Failure:    `{"type":"result","subtype":"error","is_error":true,"result":"{text}","session_id":"c6b62c6f"}`,
		Unknown:    `{"type":"hologram","session_id":"c6b62c6f"}`,
	}})
}
