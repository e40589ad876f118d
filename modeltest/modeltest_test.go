package modeltest_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/modeltest"
)

func start(t *testing.T, script modeltest.Script, models ...string) *modeltest.Server {
	t.Helper()
	srv, err := modeltest.Start(script, models...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv
}

// do sends a request on a separate connection, so that no client state
// outlives a test.
func do(t *testing.T, ctx context.Context, method, url, body string, header http.Header) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return client.Do(req)
}

func ask(t *testing.T, srv *modeltest.Server, body string) *http.Response {
	t.Helper()
	resp, err := do(t, t.Context(), "POST", srv.OpenAIURL()+"/responses", body, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

type event struct {
	Type        string
	Delta       string
	OutputIndex *int `json:"output_index"`
	Item        struct {
		Type, Name, Arguments, Input string
		CallID                       string `json:"call_id"`
		Content, Summary             []struct{ Text string }
	}
	Response struct {
		Status string
		Model  string
		Error  *struct{ Code, Message string }
		Usage  map[string]any
		Output []struct{ Type string }
	}
}

// events reads a whole stream and checks its framing.
func events(t *testing.T, resp *http.Response) []event {
	t.Helper()
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("content type %q", got)
	}
	var list []event
	name := ""
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "event: "):
			name = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data: "):
			var e event
			if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &e); err != nil {
				t.Fatal(err)
			}
			if e.Type != name {
				t.Fatalf("event %q carries type %q", name, e.Type)
			}
			list = append(list, e)
		case line != "":
			t.Fatalf("line %q", line)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestStreamOfAWholeAnswer(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(modeltest.Reply{
		modeltest.Usage{Input: 10, Cached: 4, Output: 5, Reasoning: 2},
		modeltest.Thinking{"h", "m"},
		modeltest.Text{"Hel", "lo"},
		modeltest.ToolCall{ID: "c1", Name: "run", Arguments: `{"a":1}`},
		modeltest.ToolCall{Name: "patch", Arguments: "*** free text"},
	}))
	got := events(t, ask(t, srv, `{"model":"m","stream":true,"tools":[{"type":"function","name":"run"},{"type":"custom","name":"patch"}]}`))
	var kinds, deltas []string
	for _, e := range got {
		kinds = append(kinds, e.Type)
		if e.Delta != "" {
			deltas = append(deltas, e.Delta)
		}
	}
	want := strings.Fields(`response.created
		response.output_item.added response.reasoning_summary_part.added response.reasoning_summary_text.delta response.reasoning_summary_text.delta response.output_item.done
		response.output_item.added response.content_part.added response.output_text.delta response.output_text.delta response.output_item.done
		response.output_item.added response.function_call_arguments.delta response.output_item.done
		response.output_item.added response.custom_tool_call_input.delta response.output_item.done
		response.completed`)
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"h", "m", "Hel", "lo", `{"a":1}`, "*** free text"}, deltas); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
	var done []event
	for _, e := range got {
		if e.Type == "response.output_item.done" {
			if *e.OutputIndex != len(done) {
				t.Errorf("item %d has index %d", len(done), *e.OutputIndex)
			}
			done = append(done, e)
		}
	}
	if done[0].Item.Summary[0].Text != "hm" || done[1].Item.Content[0].Text != "Hello" {
		t.Errorf("whole texts: %+v", done[:2])
	}
	if i := done[2].Item; i.Type != "function_call" || i.CallID != "c1" || i.Name != "run" || i.Arguments != `{"a":1}` {
		t.Errorf("function call: %+v", i)
	}
	if i := done[3].Item; i.Type != "custom_tool_call" || i.CallID == "" || i.Input != "*** free text" {
		t.Errorf("free text call: %+v", i)
	}
	last := got[len(got)-1].Response
	if last.Status != "completed" || last.Model != "m" || len(last.Output) != 4 {
		t.Errorf("response: %+v", last)
	}
	usage := map[string]any{
		"input_tokens": 10.0, "input_tokens_details": map[string]any{"cached_tokens": 4.0},
		"output_tokens": 5.0, "output_tokens_details": map[string]any{"reasoning_tokens": 2.0},
		"total_tokens": 15.0,
	}
	if diff := cmp.Diff(usage, last.Usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

func TestRequestIsRecordedWhole(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(nil))
	body := `{"model":"m1","instructions":"sys MARK","reasoning":{"effort":"high"},"text":{"verbosity":"low"},
		"tools":[{"type":"function","name":"run"},{"type":"web_search"}],
		"input":[
			{"type":"additional_tools","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}]},
			{"type":"message","role":"developer","content":"dev"},
			{"type":"message","role":"user","content":[{"type":"input_text","text":"one MARK"},{"type":"input_image","image_url":"x"},{"type":"input_text","text":"two"}]},
			{"type":"function_call","name":"run","arguments":"{}","call_id":"c1"},
			{"type":"function_call_output","call_id":"c1","output":"text out"},
			{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]},
			{"role":"assistant","content":[{"type":"output_text","text":"said"}]}]}`
	header := http.Header{"Authorization": {"Bearer sk-1"}, "X-Other": {"y"}}
	resp, err := do(t, t.Context(), "POST", srv.OllamaURL()+"/responses?q=1", body, header)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	r := srv.Requests()[0]
	if !r.IsModel() || r.Provider != "openai" || r.Method != "POST" || r.Path != "/v1/responses" || r.Query.Get("q") != "1" ||
		r.Header.Get("Authorization") != "Bearer sk-1" || r.Header.Get("X-Other") != "y" || string(r.Body) != body {
		t.Errorf("recorded %+v", r)
	}
	if r.Model() != "m1" || r.Effort() != "high" || r.Verbosity() != "low" {
		t.Errorf("model %q, effort %q, verbosity %q", r.Model(), r.Effort(), r.Verbosity())
	}
	wantMessages := []modeltest.Message{
		{Role: "system", Texts: []string{"sys MARK"}},
		{Role: "developer", Texts: []string{"dev"}},
		{Role: "user", Texts: []string{"one MARK", "two"}},
		{Role: "assistant", Texts: []string{"said"}},
	}
	if diff := cmp.Diff(wantMessages, r.Messages()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"dev", "one MARK", "two"}, r.Texts("user", "developer")); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	if n := r.Count("MARK"); n != 2 {
		t.Errorf("MARK counted %d times", n)
	}
	if diff := cmp.Diff([]string{"run", "exec"}, r.Tools()); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]modeltest.ToolResult{{ID: "c1", Output: "text out"}, {ID: "c2", Output: "ab"}}, r.ToolResults()); diff != "" {
		t.Errorf("tool results (-want +got):\n%s", diff)
	}
}

func TestCompressedRequestIsReadable(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(nil))
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := io.WriteString(w, `{"model":"m","input":"zipped"}`); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	resp, err := do(t, t.Context(), "POST", srv.OpenAIURL()+"/responses", z.String(), http.Header{"Content-Encoding": {"gzip"}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := srv.Requests()[0].Texts("user"); !cmp.Equal(got, []string{"zipped"}) {
		t.Errorf("texts %q", got)
	}
}

func TestAnswerAsOneDocument(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(modeltest.Reply{modeltest.Text{"a", "b"}}))
	resp := ask(t, srv, `{"model":"m","input":"hi"}`)
	var doc struct {
		Status string
		Output []struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(read(t, resp)), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Status != "completed" || doc.Output[0].Content[0].Text != "ab" {
		t.Errorf("document %+v", doc)
	}
}

func TestHTTPErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		step        modeltest.HTTPError
		status      int
		contentType string
		body        string
	}{
		"message": {modeltest.HTTPError{Status: 401, Message: "bad key"}, 401, "application/json", `{"error":{"message":"bad key","type":"error","code":"unauthorized"}}`},
		"body":    {modeltest.HTTPError{Status: 502, Body: "<html>"}, 502, "text/plain; charset=utf-8", "<html>"},
		"zero":    {modeltest.HTTPError{Body: "{}"}, 500, "application/json", "{}"},
		"header":  {modeltest.HTTPError{Status: 429, Body: "x", Header: http.Header{"content-type": {"text/x"}}}, 429, "text/x", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := ask(t, start(t, modeltest.Always(modeltest.Reply{tt.step})), `{"stream":true}`)
			if body := read(t, resp); resp.StatusCode != tt.status || resp.Header.Get("Content-Type") != tt.contentType || body != tt.body {
				t.Errorf("got %d %q %s", resp.StatusCode, resp.Header.Get("Content-Type"), body)
			}
		})
	}
}

func TestFailEndsTheStream(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(modeltest.Reply{modeltest.Text{"x"}, modeltest.Fail{Code: "rate_limit_exceeded", Message: "slow down"}, modeltest.Text{"never"}}))
	got := events(t, ask(t, srv, `{"stream":true}`))
	last := got[len(got)-1]
	if last.Type != "response.failed" || last.Response.Error == nil || last.Response.Error.Code != "rate_limit_exceeded" || last.Response.Error.Message != "slow down" {
		t.Errorf("last event %+v", last)
	}
}

func TestCutLeavesTheMessageOpen(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(modeltest.Reply{modeltest.Text{"whole"}, modeltest.Text{"part", "ial"}, modeltest.Cut{}}))
	body, err := io.ReadAll(ask(t, srv, `{"stream":true}`).Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream ended with %v", err)
	}
	if n := strings.Count(string(body), "event: response.output_item.done"); n != 1 {
		t.Errorf("%d finished messages, want the first alone:\n%s", n, body)
	}
	if !strings.Contains(string(body), `"delta":"ial"`) || strings.Contains(string(body), "response.completed") {
		t.Errorf("stream:\n%s", body)
	}
}

func TestCutBeforeTheHeaders(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(modeltest.Reply{modeltest.Cut{}}))
	resp, err := do(t, t.Context(), "POST", srv.OpenAIURL()+"/responses", `{"stream":true}`, nil)
	if err == nil {
		resp.Body.Close()
		t.Fatalf("got an answer with status %d", resp.StatusCode)
	}
}

func TestWaitHoldsTheRestBack(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	srv := start(t, modeltest.Always(modeltest.Reply{modeltest.Text{"first"}, modeltest.Wait(release), modeltest.Text{"second"}}))
	resp := ask(t, srv, `{"stream":true}`)
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, "second") {
			t.Fatal("the text after the wait came before its release")
		}
		if strings.Contains(line, `"delta":"first"`) {
			break
		}
	}
	close(release)
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(rest), "second") || !strings.Contains(string(rest), "response.completed") {
		t.Errorf("rest:\n%s", rest)
	}
}

func TestCloseEndsSilence(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]modeltest.Reply{
		"before headers": {modeltest.Silence{}},
		"in the stream":  {modeltest.Text{}, modeltest.Silence{}},
		"wait":           {modeltest.Wait(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, modeltest.Always(reply))
			ended := make(chan error, 1)
			go func() {
				resp, err := do(t, t.Context(), "POST", srv.OpenAIURL()+"/responses", `{"stream":true}`, nil)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				ended <- err
			}()
			if _, err := srv.Await(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			srv.Close()
			if err := <-ended; err == nil {
				t.Error("the held answer ended as a complete one")
			}
			if len(srv.Requests()) != 1 {
				t.Error("the record is gone")
			}
		})
	}
}

func TestClientThatLeavesEndsSilence(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(modeltest.Reply{modeltest.Silence{}}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if _, err := srv.Await(t.Context(), 1); err == nil {
			cancel()
		}
	}()
	resp, err := do(t, ctx, "POST", srv.OpenAIURL()+"/responses", `{"stream":true}`, nil)
	if err == nil {
		resp.Body.Close()
		t.Fatal("got an answer")
	}
}

func TestAwait(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(nil))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := srv.Await(canceled, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	ask(t, srv, `{"model":"a"}`)
	ask(t, srv, `{"model":"b"}`)
	if got, err := srv.Await(t.Context(), 1); err != nil || len(got) != 1 || got[0].Model() != "a" {
		t.Errorf("got %v, %v", got, err)
	}
	srv.Close()
	if _, err := srv.Await(t.Context(), 3); err == nil {
		t.Error("a closed server still waits")
	}
}

func TestRepliesAreUsedInOrder(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Replies(modeltest.Reply{modeltest.Text{"one"}}, modeltest.Reply{modeltest.Text{"two"}}), "m1", "m2")
	for _, want := range []string{"one", "two"} {
		aside, err := do(t, t.Context(), "GET", srv.OpenAIURL()+"/models", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if body := read(t, aside); !strings.Contains(body, `"id":"m2"`) {
			t.Errorf("models: %s", body)
		}
		aside.Body.Close()
		if body := read(t, ask(t, srv, `{}`)); !strings.Contains(body, `"`+want+`"`) {
			t.Errorf("want %q in %s", want, body)
		}
	}
	over := ask(t, srv, `{}`)
	if body := read(t, over); over.StatusCode != http.StatusBadRequest || !strings.Contains(body, "2 replies") {
		t.Errorf("after the end: %d %s", over.StatusCode, body)
	}
	if all, model := len(srv.Requests()), len(srv.ModelRequests()); all != 5 || model != 3 {
		t.Errorf("%d requests, %d of them to the model", all, model)
	}
}

func TestAsides(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Always(nil), "llama")
	for _, tt := range []struct {
		method, path string
		header       http.Header
		status       int
		body         string
	}{
		{"GET", "/v1/models", nil, 200, `"id":"llama"`},
		{"GET", "/api/tags", nil, 200, `"name":"llama"`},
		{"GET", "/api/version", nil, 200, `"version":"`},
		{"POST", "/api/pull", nil, 200, `{"status":"success"}`},
		{"GET", "/", nil, 200, "Ollama"},
		{"HEAD", "/", nil, 200, ""},
		{"GET", "/v1/responses", http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}, 426, ""},
		{"GET", "/v1/responses", nil, 404, ""},
		{"POST", "/v1/other", nil, 404, ""},
	} {
		resp, err := do(t, t.Context(), tt.method, srv.URL()+tt.path, "", tt.header)
		if err != nil {
			t.Fatal(err)
		}
		if body := read(t, resp); resp.StatusCode != tt.status || !strings.Contains(body, tt.body) {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, resp.StatusCode, body)
		}
		resp.Body.Close()
	}
	if len(srv.Requests()) != 9 || len(srv.ModelRequests()) != 0 {
		t.Errorf("recorded %d, %d to the model", len(srv.Requests()), len(srv.ModelRequests()))
	}
}

func TestBadBodyUsesNoReply(t *testing.T) {
	t.Parallel()
	srv := start(t, modeltest.Replies(modeltest.Reply{modeltest.Text{"kept"}}))
	for _, body := range []string{"", "[]", `{"input":[{"content":5}]}`} {
		if resp := ask(t, srv, body); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("body %q: %d", body, resp.StatusCode)
		}
	}
	if body := read(t, ask(t, srv, `{}`)); !strings.Contains(body, "kept") {
		t.Errorf("answer: %s", body)
	}
}

func TestManyClientsAtOnce(t *testing.T) {
	t.Parallel()
	calls := 0 // the script is never run twice at the same time
	srv := start(t, func(*modeltest.Request) modeltest.Reply {
		calls++
		return modeltest.Reply{modeltest.Text{"x"}}
	})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			resp, err := do(t, t.Context(), "POST", srv.OpenAIURL()+"/responses", `{"stream":true,"input":"hi"}`, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Error(err)
			}
			_ = srv.Requests()
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := srv.Await(ctx, 20); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if calls != 20 {
		t.Errorf("the script was asked %d times", calls)
	}
}

func TestStartRefusesNoScript(t *testing.T) {
	t.Parallel()
	if srv, err := modeltest.Start(nil); err == nil {
		srv.Close()
		t.Error("no error")
	}
}
