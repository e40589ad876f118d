package codex

import (
	"bytes"
	"os"
	"testing"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/backendtest"
	"github.com/google/go-cmp/cmp"
)

func TestTranscripts(t *testing.T) {
	t.Parallel()
	backendtest.Transcripts(t, Runtime(), "testdata")
}

func TestDecodeLinesThatAreNotInTheTranscripts(t *testing.T) {
	t.Parallel()
	three := 3
	for name, c := range map[string]struct {
		line string
		want []agent.Event
	}{
		"blank":        {" ", nil},
		"no JSON":      {"hello", []agent.Event{{Kind: agent.KindRaw, Text: "hello"}}},
		"cut JSON":     {`{"type":"turn.st`, []agent.Event{{Kind: agent.KindRaw, Text: `{"type":"turn.st`}}},
		"unknown type": {`{"type":"new"}`, []agent.Event{{Kind: agent.KindRaw, Text: `{"type":"new"}`}}},
		"unknown item": {`{"type":"item.completed","item":{"type":"new"}}`, []agent.Event{{Kind: agent.KindRaw, Text: `{"type":"item.completed","item":{"type":"new"}}`}}},
		"no item":      {`{"type":"item.completed"}`, []agent.Event{{Kind: agent.KindRaw, Text: `{"type":"item.completed"}`}}},
		"file change": {`{"type":"item.completed","item":{"id":"i","type":"file_change","changes":[{"path":"/a","kind":"add"}],"status":"completed"}}`,
			[]agent.Event{{Kind: agent.KindFileChange, Changes: []agent.FileChange{{Path: "/a", Action: "add"}}}}},
		"warning": {`{"type":"item.completed","item":{"id":"i","type":"error","message":"careful"}}`,
			[]agent.Event{{Kind: agent.KindWarning, Text: "careful"}}},
		"plan": {`{"type":"item.updated","item":{"id":"i","type":"todo_list","items":[{"text":"a","completed":true},{"text":"b","completed":false}]}}`,
			[]agent.Event{{Kind: agent.KindPlan, Plan: []agent.PlanStep{{Text: "a", Status: "completed"}, {Text: "b", Status: "pending"}}}}},
		"failed command": {`{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"x","aggregated_output":"no","exit_code":3,"status":"failed"}}`,
			[]agent.Event{{Kind: agent.KindToolResult, Failed: true, Tool: &agent.Tool{ID: "i", Name: "command", Output: agent.Plain("no"), ExitCode: &three}}}},
		"usage limit": {`{"type":"turn.failed","error":{"message":"You've hit your usage limit."}}`,
			[]agent.Event{{Kind: agent.KindResult, Failed: true, Failure: agent.FailureQuota, Text: "You've hit your usage limit."}}},
		"login": {`{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized: x"}}`,
			[]agent.Event{{Kind: agent.KindResult, Failed: true, Failure: agent.FailureAuthentication, Text: "unexpected status 401 Unauthorized: x"}}},
		"last error": {`{"type":"error","message":"stream closed"}`,
			[]agent.Event{{Kind: agent.KindWarning, Text: "stream closed"}}},
		"reconnect": {`{"type":"error","message":"Reconnecting... 2/5 (stream closed)"}`,
			[]agent.Event{{Kind: agent.KindRetry, Text: "stream closed", Attempt: 2, MaxAttempts: 5}}},
		"reconnect without a count": {`{"type":"error","message":"Reconnecting... (rate limit exceeded: slow)"}`,
			[]agent.Event{{Kind: agent.KindRetry, Text: "rate limit exceeded: slow", Failure: agent.FailureQuota}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Runtime().NewDecoder().Decode([]byte(c.line), nil)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRecognize(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/exec-tool-gpt-5.5.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		if !recognize(line) {
			t.Errorf("not recognized: %s", line)
		}
	}
	for _, line := range []string{"", "hello", `{"type":"init","session_id":"x"}`, `{"type":"system","subtype":"init"}`, `{"type":"error","message":"x"}`} {
		if recognize([]byte(line)) {
			t.Errorf("recognized: %s", line)
		}
	}
}

func FuzzDecode(f *testing.F) { backendtest.FuzzDecoder(f, Runtime(), "testdata") }

func BenchmarkDecode(b *testing.B) { backendtest.BenchmarkDecoder(b, Runtime(), "testdata") }
