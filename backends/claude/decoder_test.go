package claude

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
)

func TestTranscripts(t *testing.T) {
	t.Parallel()
	backendtest.Transcripts(t, Runtime(), "testdata")
}

func TestDecode(t *testing.T) {
	t.Parallel()
	three := 3
	for _, test := range []struct {
		name, lines string
		want        []agent.Event
	}{
		{"blank lines are nothing", "\n  \n", nil},
		{"not JSON", "oops", []agent.Event{{Kind: agent.KindRaw, Text: "oops"}}},
		{"unknown type", `{"type":"new"}`, []agent.Event{{Kind: agent.KindRaw, Text: `{"type":"new"}`}}},
		{"unknown subtype", `{"type":"system","subtype":"new"}`, []agent.Event{{Kind: agent.KindRaw, Text: `{"type":"system","subtype":"new"}`}}},
		{"wrong types", `{"type":"assistant","message":7}`, []agent.Event{{Kind: agent.KindRaw, Text: `{"type":"assistant","message":7}`}}},
		{"subagent", `{"type":"assistant","parent_tool_use_id":"t1","message":{"id":"m","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t2","name":"Read","input":{"file_path":"x"}}]}}`,
			[]agent.Event{
				{Kind: agent.KindText, MessageID: "m", Text: "a", Subagent: "t1"},
				{Kind: agent.KindToolCall, Subagent: "t1", Tool: &agent.Tool{ID: "t2", Name: "Read", Input: json.RawMessage(`{"file_path":"x"}`)}},
			}},
		{"prompt of a subagent", `{"type":"user","parent_tool_use_id":"t1","message":{"content":[{"type":"text","text":"do it"}]}}`,
			[]agent.Event{{Kind: agent.KindHeartbeat, Subagent: "t1"}}},
		{"text in place of blocks", `{"type":"user","message":{"content":"<local-command-stdout>x"}}`, []agent.Event{{Kind: agent.KindHeartbeat}}},
		{"thinking", `{"type":"assistant","message":{"id":"m","content":[{"type":"thinking","thinking":"hm","signature":"x"}]}}`, []agent.Event{{Kind: agent.KindThinking, MessageID: "m", Text: "hm"}}},
		{"redacted thinking", `{"type":"assistant","message":{"id":"m","content":[{"type":"redacted_thinking","data":"x"}]}}`, []agent.Event{{Kind: agent.KindHeartbeat}}},
		{"failed command", `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":[{"type":"text","text":"Exit code 3\nno"},{"type":"image"}]}]},"tool_use_result":"Error: x"}`,
			[]agent.Event{{Kind: agent.KindToolResult, Failed: true, Tool: &agent.Tool{ID: "t", Output: agent.Plain("no"), ExitCode: &three}}}},
		{"edit", `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]},"tool_use_result":{"filePath":"/w/a","structuredPatch":[]}}`,
			[]agent.Event{
				{Kind: agent.KindToolResult, Tool: &agent.Tool{ID: "t", Output: agent.Plain("ok")}},
				{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: "/w/a", Action: "update"}}},
			}},
		{"edit with hunks", `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]},"tool_use_result":{"filePath":"/w/a","oldString":"b","structuredPatch":[` +
			`{"oldStart":1,"oldLines":2,"newStart":1,"newLines":2,"lines":[" a","-b","+\"c\""]},{"oldStart":9,"oldLines":1,"newStart":9,"newLines":0,"lines":["-z","\\ No newline at end of file"]}]}}`,
			[]agent.Event{
				{Kind: agent.KindToolResult, Tool: &agent.Tool{ID: "t", Output: agent.Plain("ok")}},
				{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: "/w/a", Action: "update", Diff: "@@ -1,2 +1,2 @@\n a\n-b\n+\"c\"\n@@ -9,1 +9,0 @@\n-z\n\\ No newline at end of file\n"}}},
			}},
		{"hunks of another shape", `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]},"tool_use_result":{"filePath":"/w/a","structuredPatch":[7,{"lines":["+x",{}]}]}}`,
			[]agent.Event{
				{Kind: agent.KindToolResult, Tool: &agent.Tool{ID: "t", Output: agent.Plain("ok")}},
				{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: "/w/a", Action: "update"}}},
			}},
		{"new file", `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]},"tool_use_result":{"type":"create","filePath":"/w/a","content":"x\ny\n","structuredPatch":[],"originalFile":null}}`,
			[]agent.Event{
				{Kind: agent.KindToolResult, Tool: &agent.Tool{ID: "t", Output: agent.Plain("ok")}},
				{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: "/w/a", Action: "add", Diff: "@@ -0,0 +1,2 @@\n+x\n+y\n"}}},
			}},
		{"quota", `{"type":"system","subtype":"api_retry","attempt":1,"max_retries":3,"error_status":429,"error":"rate_limit"}`,
			[]agent.Event{{Kind: agent.KindRetry, Attempt: 1, MaxAttempts: 3, Text: "rate_limit (HTTP 429)", Failure: agent.FailureQuota}}},
		{"no connection", `{"type":"system","subtype":"api_retry","attempt":1,"max_retries":3,"error_status":null,"error":"unknown"}`,
			[]agent.Event{{Kind: agent.KindRetry, Attempt: 1, MaxAttempts: 3, Text: "unknown"}}},
		{"the state of the message", `{"type":"command_lifecycle","command_uuid":"u","state":"queued","session_id":"s"}`,
			[]agent.Event{{Kind: agent.KindHeartbeat}}},
		{"rate limit events", `{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}` + "\n" + `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected"}}`,
			[]agent.Event{{Kind: agent.KindHeartbeat}, {Kind: agent.KindWarning, Text: "the usage limit is reached", Failure: agent.FailureQuota}}},
		{"interrupted", `{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}`,
			[]agent.Event{{Kind: agent.KindWarning, Text: "Request interrupted by user"}}},
		{"answer by schema", `{"is_error":false,"subtype":"success","type":"result","result":"{\"a\":1}","structured_output":{"a":1}}`,
			[]agent.Event{{Kind: agent.KindText, Text: `{"a":1}`}, {Kind: agent.KindResult, Text: `{"a":1}`}}},
		{"no answer by schema", `{"is_error":true,"subtype":"error_max_structured_output_retries","type":"result","errors":["Failed to provide"]}`,
			[]agent.Event{{Kind: agent.KindResult, Failed: true, Text: "Failed to provide"}}},
		{"failure in a success", `{"is_error":true,"result":"API Error","type":"result","subtype":"success","api_error_status":403}`,
			[]agent.Event{{Kind: agent.KindResult, Failed: true, Failure: agent.FailureAuthentication, Text: "API Error"}}},
		{"class from the message before", `{"type":"assistant","error":"rate_limit","is_api_error_message":true,"message":{"id":"m","content":[{"type":"text","text":"limit"}]}}` + "\n" +
			`{"type":"result","subtype":"success","is_error":true,"result":"limit"}`,
			[]agent.Event{
				{Kind: agent.KindWarning, Text: "limit", Failure: agent.FailureQuota},
				{Kind: agent.KindResult, Failed: true, Failure: agent.FailureQuota, Text: "limit"},
			}},
		{"usage of an older version is that of the session", `{"type":"result","subtype":"success","total_cost_usd":0.5,"modelUsage":{"a":{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":4,"cacheCreationInputTokens":8,"thinkingTokens":1}},"result":"x"}`,
			[]agent.Event{
				{Kind: agent.KindUsage, Usage: &agent.Usage{Input: 13, Cached: 4, Output: 2, Reasoning: 1, CostUSD: new(0.5), Cumulative: true}},
				{Kind: agent.KindResult, Text: "x"},
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, backendtest.Decode(t, Runtime(), []byte(test.lines))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecognize(t *testing.T) {
	t.Parallel()
	for file, output := range backendtest.Recorded(t, "testdata") {
		for line := range bytes.Lines(output) {
			if !recognize(line) {
				t.Errorf("%s: not recognised: %.100s", file, line)
			}
		}
	}
	for _, line := range []string{
		"", "{", "[]", `{"type":"thread.started","thread_id":"x"}`, `{"type":"item.completed","item":{"id":"x"}}`,
		`{"type":"init","timestamp":"x","session_id":"x","model":"m"}`, `{"type":"result","timestamp":"x","status":"success","stats":{}}`,
		`{"type":"system","subtype":"init","cwd":"/w","session_id":"x","model":"m","permissionMode":"default"}`,
		`{"type":"result","subtype":"success","is_error":false,"result":"x","session_id":"x","request_id":"y"}`,
	} {
		if recognize([]byte(line)) {
			t.Errorf("taken for Claude Code's: %s", line)
		}
	}
}

func FuzzDecode(f *testing.F) {
	backendtest.FuzzDecoder(f, Runtime(), "testdata",
		`{"type":"stream_event","event":{"delta":{"type":"text_delta","text":"x"}}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","is_error":true,"content":"Exit code 9"}]}}`,
	)
}

func BenchmarkDecode(b *testing.B) { backendtest.BenchmarkDecoder(b, Runtime(), "testdata") }
