package cursor

import (
	"bytes"
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
	raw := func(text string) []agent.Event { return []agent.Event{{Kind: agent.KindRaw, Text: text}} }
	for _, test := range []struct {
		name, lines string
		want        []agent.Event
	}{
		{"blank lines are nothing", "\n  \n", nil},
		{"not JSON", "oops", raw("oops")},
		{"not an object", "[]", raw("[]")},
		{"unknown type", `{"type":"new"}`, raw(`{"type":"new"}`)},
		{"unknown subtype", `{"type":"system","subtype":"new"}`, raw(`{"type":"system","subtype":"new"}`)},
		{"wrong types", `{"type":"assistant","message":7}`, raw(`{"type":"assistant","message":7}`)},
		{"no message", `{"type":"assistant"}`, raw(`{"type":"assistant"}`)},
		{"no tool", `{"type":"tool_call","subtype":"started","tool_call":{"x":{}}}`, raw(`{"type":"tool_call","subtype":"started","tool_call":{"x":{}}}`)},
		{"empty text", `{"type":"assistant","message":{"content":[]}}`, []agent.Event{{Kind: agent.KindHeartbeat}}},
		{"failed tool", `{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{"editToolCall":{"args":{"path":"a"},"result":{"error":{"message":"no such file"}}}}}`,
			[]agent.Event{{Kind: agent.KindToolResult, Failed: true, Tool: &agent.Tool{ID: "c", Name: "edit", Output: agent.Plain("no such file")}}}},
		{"edit", `{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{"editToolCall":{"args":{"path":"a"},"result":{"success":{}}}}}`,
			[]agent.Event{
				{Kind: agent.KindToolResult, Tool: &agent.Tool{ID: "c", Name: "edit"}},
				{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: "a", Action: "update"}}},
			}},
		{"delete", `{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{"deleteToolCall":{"args":{"path":"a"},"result":{"success":{"path":"/w/a"}}}}}`,
			[]agent.Event{
				{Kind: agent.KindToolResult, Tool: &agent.Tool{ID: "c", Name: "delete"}},
				{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: "/w/a", Action: "delete"}}},
			}},
		{"rejected", `{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{"shellToolCall":{"args":{"command":"rm x"},"result":{"rejected":{"command":"rm x","reason":"not allowed"}}}}}`,
			[]agent.Event{
				{Kind: agent.KindApproval, Failed: true, Text: "not allowed", Tool: &agent.Tool{ID: "c", Name: "shell"}},
				{Kind: agent.KindToolResult, Failed: true, Tool: &agent.Tool{ID: "c", Name: "shell", Output: agent.Plain("not allowed")}},
			}},
		{"result of one who said nothing", `{"type":"result","subtype":"success","is_error":false,"result":"hi"}`,
			[]agent.Event{{Kind: agent.KindResult, Text: "hi"}}},
		{"failed result", `{"type":"result","subtype":"error","is_error":true,"result":"You hit your usage limit"}`,
			[]agent.Event{{Kind: agent.KindResult, Failed: true, Failure: agent.FailureQuota, Text: "You hit your usage limit"}}},
		{"failed result without words", `{"type":"result","subtype":"error_during_execution"}`,
			[]agent.Event{{Kind: agent.KindResult, Failed: true, Text: "error during execution"}}},
		{"not logged in", "Error: Not authenticated. Please run 'agent login'",
			[]agent.Event{{Kind: agent.KindResult, Failed: true, Failure: agent.FailureAuthentication, Text: "Error: Not authenticated. Please run 'agent login'"}}},
		{"refused directory", "⚠ Workspace Trust Required",
			[]agent.Event{{Kind: agent.KindResult, Failed: true, Text: "⚠ Workspace Trust Required"}}},
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
		first, _, _ := bytes.Cut(output, []byte("\n"))
		if !recognize(first) {
			t.Errorf("%s is not recognised by its first line", file)
		}
	}
	for line, want := range map[string]bool{
		`{"type":"tool_call","subtype":"started","call_id":"c","tool_call":{"lsToolCall":{}},"session_id":"s"}`: true,
		`{"type":"result","subtype":"success","is_error":false,"result":"x","session_id":"s","request_id":"r"}`: true,
		"": false, "{": false, "[]": false, "text": false,
		`{"type":"thread.started","thread_id":"x"}`:                                                                                   false,
		`{"type":"init","timestamp":"x","session_id":"x","model":"m"}`:                                                                false,
		`{"type":"system","subtype":"init","apiKeySource":"none","claude_code_version":"2.1","session_id":"x","uuid":"u","cwd":"/w"}`: false,
		`{"type":"result","subtype":"success","is_error":false,"result":"x","session_id":"x","uuid":"u"}`:                             false,
		`{"type":"user","message":{"content":[]},"session_id":"x"}`:                                                                   false,
	} {
		if got := recognize([]byte(line)); got != want {
			t.Errorf("recognize(%s) = %t", line, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	backendtest.FuzzDecoder(f, Runtime(), "testdata",
		`{"type":"tool_call","subtype":"completed","tool_call":{"shellToolCall":{"result":{"rejected":7,"timeout":{}}}}}`,
	)
}

func BenchmarkDecode(b *testing.B) { backendtest.BenchmarkDecoder(b, Runtime(), "testdata") }
