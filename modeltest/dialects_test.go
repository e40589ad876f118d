package modeltest_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/modeltest"
)

// A form is how one provider is asked.
type form struct {
	path, stream     string // of a request for a stream, and its body
	wholePath, whole string // of a request for one document, and its body
	url              func(*modeltest.Server) string
}

var forms = map[string]form{
	"openai": {
		path: "/responses", wholePath: "/responses", url: (*modeltest.Server).OpenAIURL,
		stream: `{"model":"m","stream":true,"input":"hi"}`, whole: `{"model":"m","input":"hi"}`,
	},
	"openai-chat": {
		path: "/chat/completions", wholePath: "/chat/completions", url: (*modeltest.Server).OpenAIURL,
		stream: `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		whole:  `{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
	},
	"anthropic": {
		path: "/v1/messages?beta=true", wholePath: "/v1/messages", url: (*modeltest.Server).AnthropicURL,
		stream: `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		whole:  `{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
	},
	"gemini": {
		path: "/v1beta/models/m:streamGenerateContent?alt=sse", wholePath: "/v1beta/models/m:generateContent", url: (*modeltest.Server).GeminiURL,
		stream: `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
		whole:  `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
	},
}

func post(t *testing.T, srv *modeltest.Server, path, body string) *http.Response {
	t.Helper()
	resp, err := do(t, t.Context(), "POST", srv.URL()+path, body, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// data reads a whole stream and returns the documents of its events; each must
// carry the name of its type, if it is named.
func data(t *testing.T, resp *http.Response) []string {
	t.Helper()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("content type %q", got)
	}
	var list []string
	name := ""
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "event: "):
			name = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data: "):
			document := strings.TrimPrefix(line, "data: ")
			if document == "[DONE]" { // the end of Chat Completions
				continue
			}
			var typed struct{ Type string }
			if err := json.Unmarshal([]byte(document), &typed); err != nil || typed.Type != name {
				t.Fatalf("event %q: %v: %s", name, err, document)
			}
			list = append(list, document)
		case line != "":
			t.Fatalf("line %q", line)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// The same scripts say the same in the form of every provider.
func TestEveryDialectPlaysTheSameScript(t *testing.T) {
	t.Parallel()
	for name, f := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, modeltest.Always(modeltest.Reply{modeltest.Thinking{"why"}, modeltest.Text{"Hel", "lo"}}))
			if !strings.HasPrefix(f.url(srv), srv.URL()) {
				t.Errorf("URL %s", f.url(srv))
			}
			prefix := strings.TrimPrefix(f.url(srv), srv.URL())
			stream := strings.Join(data(t, post(t, srv, prefix+f.path, f.stream)), "\n")
			for _, part := range []string{`"Hel"`, `"lo"`, `"why"`} {
				if !strings.Contains(stream, part) {
					t.Errorf("the stream lacks %s:\n%s", part, stream)
				}
			}
			whole := post(t, srv, prefix+f.wholePath, f.whole)
			if body := read(t, whole); whole.StatusCode != 200 || whole.Header.Get("Content-Type") != "application/json" || !strings.Contains(body, "Hel") {
				t.Errorf("whole: %d %s", whole.StatusCode, body)
			}
			for _, r := range srv.ModelRequests() {
				if r.Provider != name || r.Model() != "m" || lastOf(r.Texts("user")) != "hi" {
					t.Errorf("%s %s %q", r.Provider, r.Model(), r.Texts("user"))
				}
			}
			if n := len(srv.ModelRequests()); n != 2 {
				t.Errorf("%d model requests", n)
			}
			if resp := post(t, srv, prefix+f.path, `{"messages":5,"contents":5,"input":5}`); resp.StatusCode != http.StatusBadRequest {
				t.Errorf("bad body: %d", resp.StatusCode)
			}
		})
	}
}

func lastOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

func TestEveryDialectCanBeCut(t *testing.T) {
	t.Parallel()
	for name, f := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, modeltest.Always(modeltest.Reply{modeltest.Text{"half", "way"}, modeltest.Cut{}}))
			prefix := strings.TrimPrefix(f.url(srv), srv.URL())
			body, err := io.ReadAll(post(t, srv, prefix+f.path, f.stream).Body)
			if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(string(body), "way") {
				t.Errorf("ended with %v after\n%s", err, body)
			}
			for _, word := range []string{"completed", "message_delta", "content_block_stop", "finishReason", "[DONE]", `"finish_reason":"`} {
				if strings.Contains(string(body), word) {
					t.Errorf("the cut answer has %q", word)
				}
			}
		})
	}
}

// An empty text sends the headers, so that a silence falls into the stream.
func TestEveryDialectCanFallSilent(t *testing.T) {
	t.Parallel()
	for name, f := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, modeltest.Always(modeltest.Reply{modeltest.Text{}, modeltest.Silence{}}))
			prefix := strings.TrimPrefix(f.url(srv), srv.URL())
			resp := post(t, srv, prefix+f.path, f.stream)
			if resp.StatusCode != 200 {
				t.Errorf("status %d", resp.StatusCode)
			}
			srv.Close()
			if _, err := io.ReadAll(resp.Body); err == nil {
				t.Error("the silent answer ended as a complete one")
			}
		})
	}
}

func TestErrorsInTheFormOfTheProvider(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path   string
		status int
		body   string
	}{
		"openai-chat 401": {"/v1/chat/completions", 401, `{"error":{"message":"m","type":"error","code":"unauthorized"}}`},
		"anthropic 400":   {"/v1/messages", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"m"}}`},
		"anthropic 401":   {"/v1/messages", 401, `{"type":"error","error":{"type":"authentication_error","message":"m"}}`},
		"anthropic 403":   {"/v1/messages", 403, `{"type":"error","error":{"type":"permission_error","message":"m"}}`},
		"anthropic 404":   {"/v1/messages", 404, `{"type":"error","error":{"type":"not_found_error","message":"m"}}`},
		"anthropic 413":   {"/v1/messages", 413, `{"type":"error","error":{"type":"request_too_large","message":"m"}}`},
		"anthropic 429":   {"/v1/messages", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"m"}}`},
		"anthropic 500":   {"/v1/messages", 500, `{"type":"error","error":{"type":"api_error","message":"m"}}`},
		"anthropic 529":   {"/v1/messages", 529, `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`},
		"gemini 401":      {"/v1beta/models/m:generateContent", 401, `{"error":{"code":401,"message":"m","status":"UNAUTHENTICATED"}}`},
		"gemini 429":      {"/v1beta/models/m:generateContent", 429, `{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}`},
		"gemini 418":      {"/v1beta/models/m:generateContent", 418, `{"error":{"code":418,"message":"m","status":"UNKNOWN"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, modeltest.Always(modeltest.Reply{modeltest.HTTPError{Status: tt.status, Message: "m"}}))
			resp := post(t, srv, tt.path, `{}`)
			if body := read(t, resp); resp.StatusCode != tt.status || body != tt.body {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
}

func TestMessagesStream(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(modeltest.Reply{
		modeltest.Thinking{"h", "m"},
		modeltest.Text{"Hel", "lo"},
		modeltest.ToolCall{ID: "c1", Name: "Bash", Arguments: `{"command":"ls"}`},
		modeltest.Usage{Input: 10, Cached: 4, Output: 5, Reasoning: 2},
	}))
	var kinds []string
	var first, last struct {
		Message struct {
			Model string
			Usage map[string]any
		}
		Usage map[string]any
		Delta struct {
			StopReason string `json:"stop_reason"`
		}
	}
	events := data(t, post(t, srv, "/v1/messages", `{"model":"m","stream":true}`))
	for _, event := range events {
		var e struct {
			Type  string
			Index int
			Block *struct{ Type, ID, Name string } `json:"content_block"`
			Delta struct {
				Text, Thinking string
				PartialJSON    string `json:"partial_json"`
			}
		}
		if err := json.Unmarshal([]byte(event), &e); err != nil {
			t.Fatal(err)
		}
		what := e.Type
		if e.Block != nil {
			what += " " + e.Block.Type + e.Block.ID + e.Block.Name
		}
		kinds = append(kinds, strings.TrimSpace(what+" "+e.Delta.Text+e.Delta.Thinking+e.Delta.PartialJSON))
	}
	want := []string{
		"message_start",
		"content_block_start thinking", "content_block_delta h", "content_block_delta m", "content_block_delta", "content_block_stop",
		"content_block_start text", "content_block_delta Hel", "content_block_delta lo", "content_block_stop",
		"content_block_start tool_usec1Bash", `content_block_delta {"command":"ls"}`, "content_block_stop",
		"message_delta", "message_stop",
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if err := json.Unmarshal([]byte(events[0]), &first); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(events[len(events)-2]), &last); err != nil {
		t.Fatal(err)
	}
	usage := func(output, thinking float64) map[string]any {
		return map[string]any{
			"input_tokens": 6.0, "cache_creation_input_tokens": 0.0, "cache_read_input_tokens": 4.0,
			"output_tokens": output, "output_tokens_details": map[string]any{"thinking_tokens": thinking},
		}
	}
	if diff := cmp.Diff(usage(1, 0), first.Message.Usage); diff != "" || first.Message.Model != "m" {
		t.Errorf("model %q, usage at the start (-want +got):\n%s", first.Message.Model, diff)
	}
	if diff := cmp.Diff(usage(5, 2), last.Usage); diff != "" || last.Delta.StopReason != "tool_use" {
		t.Errorf("stop reason %q, usage (-want +got):\n%s", last.Delta.StopReason, diff)
	}
}

func TestMessagesFailInTheStream(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(modeltest.Reply{modeltest.Fail{Code: "overloaded_error", Message: "later"}}))
	events := data(t, post(t, srv, "/v1/messages", `{"stream":true}`))
	if got := lastOf(events); got != `{"type":"error","error":{"type":"overloaded_error","message":"later"}}` {
		t.Errorf("last event %s", got)
	}
}

func TestMessagesRequest(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(nil))
	post(t, srv, "/v1/messages?beta=true", `{"model":"claude-x","output_config":{"effort":"high"},
		"system":[{"type":"text","text":"sys"},{"type":"text","text":"more MARK"}],
		"tools":[{"name":"Bash"},{"name":"Edit"}],
		"messages":[
			{"role":"user","content":"as a text"},
			{"role":"assistant","content":[{"type":"thinking","thinking":"MARK"},{"type":"text","text":"said"},{"type":"tool_use","id":"c1","name":"Bash","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"one"}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"type":"text","text":"and MARK"}]}]}`)
	r := srv.ModelRequests()[0]
	if r.Provider != "anthropic" || r.Model() != "claude-x" || r.Effort() != "high" || r.Verbosity() != "" || r.Query.Get("beta") != "true" {
		t.Errorf("provider %q, model %q, effort %q", r.Provider, r.Model(), r.Effort())
	}
	want := []modeltest.Message{
		{Role: "system", Texts: []string{"sys", "more MARK"}},
		{Role: "user", Texts: []string{"as a text"}},
		{Role: "assistant", Texts: []string{"said"}},
		{Role: "user", Texts: []string{"and MARK"}},
	}
	if diff := cmp.Diff(want, r.Messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if n := r.Count("MARK"); n != 2 {
		t.Errorf("MARK counted %d times", n)
	}
	if diff := cmp.Diff([]modeltest.ToolResult{{ID: "c1", Output: "one"}, {ID: "c2", Output: "ab"}}, r.ToolResults()); diff != "" {
		t.Errorf("tool results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Bash", "Edit"}, r.Tools()); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestGenerateStream(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(modeltest.Reply{
		modeltest.Usage{Input: 10, Cached: 4, Output: 5, Reasoning: 2},
		modeltest.Thinking{"hm"},
		modeltest.Text{"Hel", "lo"},
		modeltest.ToolCall{ID: "c1", Name: "glob", Arguments: `{"pattern":"*"}`},
		modeltest.ToolCall{ID: "c2", Name: "glob", Arguments: `nonsense`},
	}))
	type chunk struct {
		Candidates []struct {
			Content struct {
				Parts []map[string]any
			}
			FinishReason string
		}
		UsageMetadata map[string]any
	}
	var parts []map[string]any
	var last chunk
	for _, document := range data(t, post(t, srv, "/v1beta/models/m:streamGenerateContent?alt=sse", `{}`)) {
		if last.UsageMetadata != nil {
			t.Error("the usage came before the end")
		}
		last = chunk{}
		if err := json.Unmarshal([]byte(document), &last); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, last.Candidates[0].Content.Parts...)
	}
	want := []map[string]any{
		{"text": "hm", "thought": true},
		{"text": "Hel"}, {"text": "lo"},
		{"functionCall": map[string]any{"id": "c1", "name": "glob", "args": map[string]any{"pattern": "*"}}},
		{"functionCall": map[string]any{"id": "c2", "name": "glob", "args": "nonsense"}},
	}
	if diff := cmp.Diff(want, parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	usage := map[string]any{
		"promptTokenCount": 10.0, "cachedContentTokenCount": 4.0, "candidatesTokenCount": 3.0,
		"thoughtsTokenCount": 2.0, "totalTokenCount": 15.0,
	}
	if diff := cmp.Diff(usage, last.UsageMetadata); diff != "" || last.Candidates[0].FinishReason != "STOP" {
		t.Errorf("finish reason %q, usage (-want +got):\n%s", last.Candidates[0].FinishReason, diff)
	}
}

// An error in the stream is not an event, as the service sends it.
func TestGenerateFailInTheStream(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(modeltest.Reply{modeltest.Text{"x"}, modeltest.Fail{Code: "RESOURCE_EXHAUSTED", Message: "slow down"}}))
	body := read(t, post(t, srv, "/v1beta/models/m:streamGenerateContent?alt=sse", `{}`))
	if !strings.HasSuffix(body, "\n\n"+`{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}`+"\n") {
		t.Errorf("stream:\n%s", body)
	}
}

func TestGenerateRequest(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(nil))
	post(t, srv, "/v1beta/models/gemini-x:streamGenerateContent?alt=sse", `{
		"generationConfig":{"thinkingConfig":{"thinkingLevel":"HIGH"}},
		"systemInstruction":{"role":"user","parts":[{"text":"sys MARK"}]},
		"tools":[{"functionDeclarations":[{"name":"glob"},{"name":"replace"}]},{"googleSearch":{}}],
		"contents":[
			{"role":"user","parts":[{"text":"context"},{"text":"hi MARK"}]},
			{"role":"model","parts":[{"text":"MARK","thought":true},{"text":"said"},{"functionCall":{"id":"c1","name":"glob","args":{}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"glob","response":{"output":"found"}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"c2","name":"glob","response":{"error":"bad"}}}]},
			{"role":"user","parts":[{"functionResponse":{"id":"c3","name":"glob","response":{"n":1}}}]}]}`)
	r := srv.ModelRequests()[0]
	if r.Provider != "gemini" || r.Model() != "gemini-x" || r.Effort() != "HIGH" {
		t.Errorf("provider %q, model %q, effort %q", r.Provider, r.Model(), r.Effort())
	}
	want := []modeltest.Message{
		{Role: "system", Texts: []string{"sys MARK"}},
		{Role: "user", Texts: []string{"context", "hi MARK"}},
		{Role: "assistant", Texts: []string{"said"}},
	}
	if diff := cmp.Diff(want, r.Messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]modeltest.ToolResult{{ID: "c1", Output: "found"}, {ID: "c2", Output: "bad"}, {ID: "c3", Output: `{"n":1}`}}, r.ToolResults()); diff != "" {
		t.Errorf("tool results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"glob", "replace"}, r.Tools()); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

// Gemini CLI lets a small model choose: the answer fits the schema and uses up
// nothing of the script.
func TestGenerateChoiceIsAnAside(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Replies(modeltest.Reply{modeltest.Text{"kept"}}))
	body := read(t, post(t, srv, "/v1beta/models/small:generateContent", `{"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":{"type":"OBJECT","properties":{
		"why":{"type":"STRING"},"choice":{"type":"string","enum":["flash","pro"]},"score":{"type":"INTEGER"},"least":{"type":"number","minimum":7},"list":{"type":"array"},"sure":{"type":"boolean"}}}}}`))
	var answer struct {
		Candidates []struct {
			Content struct{ Parts []struct{ Text string } }
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatal(err)
	}
	if got := answer.Candidates[0].Content.Parts[0].Text; got != `{"choice":"flash","least":7,"list":[],"score":1,"sure":false,"why":""}` {
		t.Errorf("chosen %s", got)
	}
	if len(srv.Requests()) != 1 || len(srv.ModelRequests()) != 0 {
		t.Error("the choice asked the model")
	}
	if body := read(t, post(t, srv, "/v1beta/models/m:generateContent", `{}`)); !strings.Contains(body, "kept") {
		t.Errorf("answer %s", body)
	}
}

func TestAsidesOfAnthropicAndGemini(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Replies())
	for path, want := range map[string]string{
		"/v1/messages/count_tokens?beta=true":   `{"input_tokens":3}`,
		"/v1beta/models/m:countTokens":          `{"totalTokens":3}`,
		"/v1beta/models/m:generateContentTwice": "modeltest: no such path",
	} {
		if body := read(t, post(t, srv, path, `{"a":"bc"}`)); strings.TrimSpace(body) != want {
			t.Errorf("%s: %s", path, body)
		}
	}
	resp, err := do(t, t.Context(), "HEAD", srv.AnthropicURL()+"/api/hello", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || len(srv.ModelRequests()) != 0 {
		t.Errorf("hello: %d, %d model requests", resp.StatusCode, len(srv.ModelRequests()))
	}
}

// CLIs ask more than the conversation. The same words of another role take a reply of the script.
func TestAsidesTakeNoReply(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, body, other, words, reply string }{
		{"/v1/messages?beta=true", `{"system":[{"type":"text","text":"billing"},{"type":"text","text":"WORDS"}],"messages":[]}`, `{"messages":[{"role":"user","content":"WORDS"}]}`,
			"You are a security monitor for autonomous AI coding agents.", `\u003cblock\u003eno\u003c/block\u003e`},
		{"/v1/messages?beta=true", `{"system":[{"type":"text","text":"WORDS"}],"messages":[]}`, `{"messages":[{"role":"user","content":"WORDS"}]}`, "You are naming a coding session", "A session"},
		{"/v1/responses", `{"input":"WORDS"}`, `{"instructions":"WORDS","input":"go"}`, "Your task is to generate a very short title for a conversation", "A session"},
	} {
		srv := start(t, modeltest.Replies(modeltest.Reply{modeltest.Text{"kept"}}))
		if body := read(t, post(t, srv, c.path, strings.ReplaceAll(c.body, "WORDS", c.words))); !strings.Contains(body, c.reply) {
			t.Errorf("answer %s", body)
		}
		if n := len(srv.ModelRequests()); n != 0 {
			t.Errorf("the model was asked %d times", n)
		}
		if body := read(t, post(t, srv, c.path, strings.ReplaceAll(c.other, "WORDS", c.words))); !strings.Contains(body, "kept") {
			t.Errorf("%q of another role got the answer %s", c.words, body)
		}
	}
}
