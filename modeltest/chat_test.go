package modeltest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/modeltest"
)

func chatReply() modeltest.Reply {
	return modeltest.Reply{
		modeltest.Thinking{"hm"},
		modeltest.Text{"Hel", "lo"},
		modeltest.ToolCall{ID: "c1", Name: "ls", Arguments: `{"path":"."}`},
		modeltest.ToolCall{ID: "c2", Name: "ls", Arguments: `nonsense`},
		modeltest.Usage{Input: 10, Cached: 4, Output: 5, Reasoning: 2},
	}
}

func TestChatStream(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(chatReply()))
	var deltas []map[string]any
	var reasons []string
	var usage map[string]any
	for _, document := range data(t, post(t, srv, "/v1/chat/completions", `{"model":"m","stream":true}`)) {
		var chunk struct {
			Object, Model string
			Choices       []struct {
				Delta  map[string]any
				Finish string `json:"finish_reason"`
			}
			Usage map[string]any
		}
		if err := json.Unmarshal([]byte(document), &chunk); err != nil {
			t.Fatal(err)
		}
		if chunk.Object != "chat.completion.chunk" || chunk.Model != "m" || usage != nil {
			t.Errorf("chunk %s after usage %v", document, usage)
		}
		for _, choice := range chunk.Choices {
			if len(choice.Delta) > 0 {
				deltas = append(deltas, choice.Delta)
			}
			if choice.Finish != "" {
				reasons = append(reasons, choice.Finish)
			}
		}
		usage = chunk.Usage
	}
	call := func(index float64, id, arguments string) map[string]any {
		return map[string]any{"tool_calls": []any{map[string]any{
			"index": index, "id": id, "type": "function", "function": map[string]any{"name": "ls", "arguments": arguments},
		}}}
	}
	want := []map[string]any{
		{"role": "assistant", "content": ""},
		{"reasoning_content": "hm"}, {"content": "Hel"}, {"content": "lo"},
		call(0, "c1", `{"path":"."}`), call(1, "c2", "nonsense"),
	}
	if diff := cmp.Diff(want, deltas); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"tool_calls"}, reasons); diff != "" {
		t.Errorf("finish reasons (-want +got):\n%s", diff)
	}
	wantUsage := map[string]any{
		"prompt_tokens": 10.0, "completion_tokens": 5.0, "total_tokens": 15.0,
		"prompt_tokens_details":     map[string]any{"cached_tokens": 4.0},
		"completion_tokens_details": map[string]any{"reasoning_tokens": 2.0},
	}
	if diff := cmp.Diff(wantUsage, usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

func TestChatWhole(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(modeltest.Reply{modeltest.Text{"Hel", "lo"}, modeltest.Text{"!"}, modeltest.Usage{Input: 1, Output: 2}}))
	body := read(t, post(t, srv, "/v1/chat/completions", `{"model":"m"}`))
	for _, part := range []string{
		`"object":"chat.completion"`, `"message":{"role":"assistant","content":"Hello!"}`, `"finish_reason":"stop"`, `"total_tokens":3`,
	} {
		if !strings.Contains(body, part) {
			t.Errorf("the answer lacks %s: %s", part, body)
		}
	}
}

func TestChatFailInTheStream(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(modeltest.Reply{modeltest.Fail{Code: "server_error", Message: "later"}}))
	events := data(t, post(t, srv, "/v1/chat/completions", `{"stream":true}`))
	if got := lastOf(events); got != `{"error":{"message":"later","type":"error","code":"server_error"}}` {
		t.Errorf("last event %s", got)
	}
}

func TestChatRequest(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(nil))
	post(t, srv, "/v1/chat/completions", `{"model":"x","reasoning_effort":"high","verbosity":"low",
		"tools":[{"type":"function","function":{"name":"ls"}},{"type":"function","function":{"name":"edit"}}],
		"messages":[
			{"role":"system","content":"sys MARK"},
			{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two MARK"}]},
			{"role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"name":"ls","arguments":"MARK"}}]},
			{"role":"tool","tool_call_id":"c1","content":"found"}]}`)
	r := srv.ModelRequests()[0]
	if r.Provider != "openai-chat" || r.Model() != "x" || r.Effort() != "high" || r.Verbosity() != "low" || r.Count("MARK") != 2 {
		t.Errorf("provider %q, model %q, effort %q, verbosity %q, MARK %d times", r.Provider, r.Model(), r.Effort(), r.Verbosity(), r.Count("MARK"))
	}
	want := []modeltest.Message{{Role: "system", Texts: []string{"sys MARK"}}, {Role: "user", Texts: []string{"one", "two MARK"}}}
	if diff := cmp.Diff(want, r.Messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]modeltest.ToolResult{{ID: "c1", Output: "found"}}, r.ToolResults()); diff != "" {
		t.Errorf("tool results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ls", "edit"}, r.Tools()); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}
