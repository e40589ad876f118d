package gemini

import (
	"testing"

	"github.com/busdk/bus-agent/backendtest"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

func TestConformance(t *testing.T) {
	backendtest.Run(t, backendtest.Harness{Runtime: Runtime(), NativeInstructions: true, SessionFile: "$GEMINI_CLI_HOME/.gemini/tmp/work/chats/session-2026-01-02T03-04-1bca6642.jsonl", Lines: backendtest.Lines{
		Session:    `{"type":"init","timestamp":"2026-01-02T03:04:05Z","session_id":"1bca6642-a705-42f3-8405-9f5d9281ceb9","model":"m"}`,
		Text:       `{"type":"message","timestamp":"2026-01-02T03:04:05Z","role":"assistant","content":"{text}"}`,
		ToolCall:   `{"type":"tool_use","timestamp":"2026-01-02T03:04:05Z","tool_name":"run_shell_command","tool_id":"t","parameters":{}}`,
		ToolResult: `{"type":"tool_result","timestamp":"2026-01-02T03:04:05Z","tool_id":"t","status":"success","output":"{text}"}`,
		Success:    `{"type":"result","timestamp":"2026-01-02T03:04:05Z","status":"success","stats":{}}`,
		Failure:    `{"type":"result","timestamp":"2026-01-02T03:04:05Z","status":"error","error":{"message":"{text}"}}`,
		Unknown:    `{"type":"hologram","timestamp":"2026-01-02T03:04:05Z"}`,
	}})
}
