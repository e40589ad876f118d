package codex

import (
	"testing"

	"github.com/busdk/bus-agent/backendtest"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

func TestConformance(t *testing.T) {
	backendtest.Run(t, backendtest.Harness{Runtime: Runtime(), NativeInstructions: true, SessionFile: "$CODEX_HOME/sessions/2026/01/02/rollout-2026-01-02T03-04-05-01a1fb7b-3d6d-7b52-8c0c-038180f7b8a6.jsonl", Lines: backendtest.Lines{
		Session:    `{"type":"thread.started","thread_id":"01a1fb7b-3d6d-7b52-8c0c-038180f7b8a6"}`,
		Text:       `{"type":"item.completed","item":{"id":"item_{n}","type":"agent_message","text":"{text}"}}`,
		ToolCall:   `{"type":"item.started","item":{"id":"item_x","type":"command_execution","command":"true","status":"in_progress"}}`,
		ToolResult: `{"type":"item.completed","item":{"id":"item_x","type":"command_execution","aggregated_output":"{text}","exit_code":0}}`,
		Success:    `{"type":"turn.completed","usage":{"input_tokens":10,"output_tokens":1}}`,
		Failure:    `{"type":"turn.failed","error":{"message":"{text}"}}`,
		Retry:      `{"type":"error","message":"Reconnecting... 1/5 ({text})"}`,
		Unknown:    `{"type":"item.completed","item":{"id":"item_0","type":"hologram"}}`,
	}})
}
