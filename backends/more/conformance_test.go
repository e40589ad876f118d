package more

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/backendtest"
)

// lines are what the CLIs write.
var lines = map[string]backendtest.Lines{
	"cline": {
		Text:       `{"type":"agent_event","event":{"type":"iteration_start","iteration":{n}}}` + "\n" + `{"type":"agent_event","event":{"type":"content_end","contentType":"text","text":"{text}"}}`,
		ToolCall:   `{"type":"agent_event","event":{"type":"content_start","contentType":"tool","toolName":"run_commands","toolCallId":"t","input":{}}}`,
		ToolResult: `{"type":"agent_event","event":{"type":"content_end","contentType":"tool","toolCallId":"t","output":[{"result":"{text}","success":true}]}}`,
		Success:    `{"type":"run_result","finishReason":"completed","model":{"id":"m"}}`,
		Failure:    `{"type":"run_result","finishReason":"error","text":"{text}","model":{"id":"m"}}`,
		Unknown:    `{"type":"hologram"}`,
	},
	"copilot": {
		Session:    `{"type":"session.start","data":{"sessionId":"c396f6cb-5565-43a8-b1f9-2968d4cbd985"}}`,
		Text:       `{"type":"assistant.message","data":{"messageId":"m{n}","model":"m","content":"{text}"}}`,
		ToolCall:   `{"type":"tool.execution_start","data":{"toolCallId":"t","toolName":"bash","arguments":{}}}`,
		ToolResult: `{"type":"tool.execution_complete","data":{"toolCallId":"t","success":true,"result":{"content":"{text}"}}}`,
		Success:    `{"type":"result","sessionId":"c396f6cb-5565-43a8-b1f9-2968d4cbd985","exitCode":0}`,
		Failure: `{"type":"session.error","data":{"errorType":"query","message":"{text}"}}` + "\n" +
			`{"type":"result","sessionId":"c396f6cb-5565-43a8-b1f9-2968d4cbd985","exitCode":1}`,
		Retry:   `{"type":"assistant.turn_retry","data":{"reason":"{text}"}}`,
		Unknown: `{"type":"hologram"}`,
	},
	"droid": {
		Session:    `{"type":"system","subtype":"init","session_id":"c396f6cb-5565-43a8-b1f9-2968d4cbd985","model":"m"}`,
		Text:       `{"type":"message","role":"assistant","id":"m{n}","text":"{text}"}`,
		ToolCall:   `{"type":"tool_call","id":"t","messageId":"m","toolName":"Execute","parameters":{}}`,
		ToolResult: `{"type":"tool_result","id":"t","isError":false,"value":"{text}"}`,
		Success:    `{"type":"completion"}`,
		Failure:    `{"type":"error","source":"cli","message":"{text}"}`,
		Unknown:    `{"type":"hologram"}`,
	},
	"opencode": { // a call and its result are one line
		Session: `{"type":"step_start","sessionID":"ses_1","part":{}}`,
		Text:    `{"type":"text","sessionID":"ses_1","part":{"messageID":"m{n}","text":"{text}"}}`,
		Success: `{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop"}}`,
		Failure: `{"type":"error","sessionID":"ses_1","error":{"name":"APIError","data":{"message":"{text}"}}}`,
		Unknown: `{"type":"hologram","sessionID":"ses_1"}`,
	},
	"pi": {
		Session:    `{"type":"session","id":"c396f6cb-5565-43a8-b1f9-2968d4cbd985"}`,
		Text:       `{"type":"message_end","message":{"role":"assistant","model":"m","content":[{"type":"text","text":"{text}"}],"stopReason":"stop"}}`,
		ToolCall:   `{"type":"tool_execution_start","toolCallId":"t","toolName":"bash","args":{}}`,
		ToolResult: `{"type":"tool_execution_end","toolCallId":"t","toolName":"bash","result":{"content":[{"type":"text","text":"{text}"}]},"isError":false}`,
		Success:    `{"type":"agent_end","messages":[]}`,
		Failure: `{"type":"message_end","message":{"role":"assistant","model":"m","content":[],"stopReason":"error","errorMessage":"{text}"}}` + "\n" +
			`{"type":"agent_end","messages":[]}`,
		Retry:   `{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"errorMessage":"{text}"}`,
		Unknown: `{"type":"hologram"}`,
	},
	"qwen": {
		Session:    `{"type":"system","subtype":"init","uuid":"c396f6cb-5565-43a8-b1f9-2968d4cbd985","session_id":"c396f6cb-5565-43a8-b1f9-2968d4cbd985","model":"m"}`,
		Text:       `{"type":"assistant","message":{"id":"m{n}","content":[{"type":"text","text":"{text}"}]}}`,
		ToolCall:   `{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"run_shell_command","input":{}}]}}`,
		ToolResult: `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"{text}"}]}}`,
		Success:    `{"type":"result","subtype":"success","is_error":false}`,
		Failure:    `{"type":"result","subtype":"error_during_execution","is_error":true,"error":{"message":"{text}"}}`,
		Retry:      `{"type":"system","subtype":"retry","data":{"reason":"{text}","attempt":1,"maxRetries":3}}`,
		Unknown:    `{"type":"hologram"}`,
	},
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, rt := range withRuns(t) {
		t.Run(rt.ID, func(t *testing.T) {
			t.Parallel()
			own, ok := lines[rt.ID]
			if !ok {
				t.Fatal("no lines are known")
			}
			for _, line := range []string{own.Text, own.Success, own.Failure} {
				if !strings.HasPrefix(line, "{") {
					t.Errorf("no line of JSON: %s", line)
				}
			}
			backendtest.Run(t, backendtest.Harness{Runtime: rt, Lines: own, NativeInstructions: rt.ID == "droid", Tool: map[string]string{"pi": "read"}[rt.ID]})
		})
	}
}

func FuzzDecode(f *testing.F) {
	all := withRuns(f)
	for _, rt := range all {
		for _, output := range backendtest.Recorded(f, filepath.Join("testdata", rt.ID)) {
			for line := range bytes.Lines(output) {
				f.Add(line)
			}
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, rt := range all {
			events := rt.NewDecoder().Decode(line, nil)
			if len(events) == 0 && len(bytes.TrimSpace(line)) > 0 {
				t.Errorf("%s: the line was lost", rt.ID)
			}
			for _, e := range events {
				if _, err := json.Marshal(e); err != nil {
					t.Errorf("%s: %v", rt.ID, err)
				}
			}
		}
	})
}
