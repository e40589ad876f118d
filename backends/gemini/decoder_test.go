package gemini

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
	for _, test := range []struct {
		name, lines string
		want        []agent.Event
	}{
		{"blank lines are nothing", "\n  \n", nil},
		{"not JSON", "oops", []agent.Event{{Kind: agent.KindRaw, Text: "oops"}}},
		{"unknown type", `{"type":"new"}`, []agent.Event{{Kind: agent.KindRaw, Text: `{"type":"new"}`}}},
		{"wrong types", `{"type":"message","content":7}`, []agent.Event{{Kind: agent.KindRaw, Text: `{"type":"message","content":7}`}}},
		{"unknown fields of a known line", `{"type":"tool_use","tool_id":7}`, []agent.Event{{Kind: agent.KindRaw, Text: `{"type":"tool_use","tool_id":7}`}}},
		{"the model is not known yet", `{"type":"init","session_id":"s","model":"auto"}` + "\n" +
			`{"type":"result","status":"success","stats":{"total_tokens":9,"input_tokens":6,"output_tokens":3,"cached":1,"models":{"small":{"output_tokens":1},"big":{"output_tokens":2},"auto":{"output_tokens":9}}}}`,
			[]agent.Event{
				{Kind: agent.KindSessionStarted, SessionID: "s"},
				{Kind: agent.KindSessionStarted, SessionID: "s", Model: "big"},
				{Kind: agent.KindUsage, Usage: &agent.Usage{Input: 6, Cached: 1, Output: 3}},
				{Kind: agent.KindResult},
			}},
		{"messages", `{"type":"message","role":"assistant","content":"a","delta":true}` + "\n" + `{"type":"message","role":"assistant","content":"b","delta":true}` + "\n" +
			`{"type":"tool_use","tool_id":"t","tool_name":"x"}` + "\n" + `{"type":"message","role":"assistant","content":"c","delta":true}` + "\n" +
			`{"type":"message","role":"assistant","content":"d"}` + "\n" + `{"type":"message","role":"assistant","content":"e","delta":true}`,
			[]agent.Event{
				{Kind: agent.KindText, MessageID: "1", Delta: true, Text: "a"},
				{Kind: agent.KindText, MessageID: "1", Delta: true, Text: "b"},
				{Kind: agent.KindToolCall, Tool: &agent.Tool{ID: "t", Name: "x"}},
				{Kind: agent.KindText, MessageID: "2", Delta: true, Text: "c"},
				{Kind: agent.KindText, MessageID: "3", Text: "d"},
				{Kind: agent.KindText, MessageID: "4", Delta: true, Text: "e"},
			}},
		{"failed tool without output", `{"type":"tool_result","tool_id":"t","status":"error","error":{"type":"x","message":"why"}}`,
			[]agent.Event{{Kind: agent.KindToolResult, Failed: true, Tool: &agent.Tool{ID: "t", Output: agent.Plain("why")}}}},
		{"failure without a reason takes the last error", `{"type":"error","severity":"error","message":"cut"}` + "\n" + `{"type":"result","status":"error"}`,
			[]agent.Event{{Kind: agent.KindWarning, Text: "cut"}, {Kind: agent.KindResult, Failed: true, Text: "cut"}}},
		{"quota", `{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: {\"error\":{\"code\": 429}}]"}}`,
			[]agent.Event{{Kind: agent.KindResult, Failed: true, Failure: agent.FailureQuota, Text: `[API Error: {"error":{"code": 429}}]`}}},
		{"not logged in", `{"type":"result","status":"error","error":{"type":"FatalAuthenticationError","message":"no"}}`,
			[]agent.Event{{Kind: agent.KindResult, Failed: true, Failure: agent.FailureAuthentication, Text: "no"}}},
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
		`{"type":"system","subtype":"init","session_id":"x","uuid":"y","timestamp":"z"}`, `{"type":"error","message":"x"}`,
		`{"type":"system","subtype":"init","cwd":"/w","session_id":"x","model":"m","permissionMode":"default"}`,
		`{"type":"result","subtype":"success","is_error":false,"result":"x","session_id":"x","request_id":"y"}`,
	} {
		if recognize([]byte(line)) {
			t.Errorf("taken for Gemini CLI's: %s", line)
		}
	}
}

func FuzzDecode(f *testing.F) {
	backendtest.FuzzDecoder(f, Runtime(), "testdata",
		`{"type":"result","status":"error","stats":{"models":{"a":{}}}}`,
	)
}

func BenchmarkDecode(b *testing.B) { backendtest.BenchmarkDecoder(b, Runtime(), "testdata") }
