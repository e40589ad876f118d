package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestRequest(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{"openai", "xai", "perplexity"} {
		w := serve(t, stream(delta("hi"), stop, "[DONE]"))
		ask(t, w, "--provider", provider).wantAnswer(t, "hi")
		r := w.requests[0]
		path := "/v1/chat/completions"
		if provider == "perplexity" {
			path = "/chat/completions"
		}
		if r.Method != http.MethodPost || r.URL.Path != path || r.Header.Get("Authorization") != "Bearer "+token ||
			r.Header.Get("Content-Type") != "application/json" || !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
			t.Errorf("%s: %s %s %v", provider, r.Method, r.URL, r.Header)
		}
		want := `{"model":"m","messages":[{"role":"user","content":"hello"}],"stream":true}`
		if provider == "openai" {
			want = strings.TrimSuffix(want, "}") + `,"stream_options":{"include_usage":true}}`
		}
		if got := strings.TrimSpace(w.bodies[0]); got != want {
			t.Errorf("%s sends %s", provider, got)
		}
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	w := serve(t, stream(
		`{"id":"c-1","model":"m-0709","choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
		`{"id":"c-1","model":"m-0709","choices":[{"delta":{"reasoning_content":"hm"}}]}`,
		`{"id":"c-1","model":"m-0709","choices":[{"delta":{"reasoning":", yes"}}]}`,
		delta("ha"), delta("ha"), delta("haha ü<b> "), stop,
		`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}}`,
		"[DONE]",
	))
	p := ask(t, w)
	p.wantAnswer(t, "hahahaha ü<b> ")
	if !strings.Contains(p.raw, `"haha ü<b> "`) {
		t.Errorf("HTML characters are escaped:\n%s", p.raw)
	}
	if got := p.text("thinking"); got != "hm, yes" {
		t.Errorf("thinking is %q", got)
	}
	var kinds []string
	for _, l := range p.lines {
		kinds = append(kinds, l.Type)
	}
	if got, want := strings.Join(kinds, " "), "start answer thinking thinking text text text usage result"; got != want {
		t.Errorf("the lines are %s, want %s", got, want)
	}
	if a := p.of("answer")[0]; a.ID != "c-1" || a.Model != "m-0709" {
		t.Errorf("%+v", a)
	}
	if u := p.of("usage")[0].Usage; !reflect.DeepEqual(u, &Usage{Input: 7, Cached: 3, Output: 5, Reasoning: 2}) {
		t.Errorf("%+v", u)
	}
	if s := p.of("start")[0]; s.Provider != "openai" || s.Model != "m" || s.Access != "write" || s.Endpoint != w.URL+"/v1/chat/completions" {
		t.Errorf("%+v", s)
	}
}

// Unusual responses that are complete answers.
func TestUnusualAnswers(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"no [DONE]":              stream(delta("hi"), stop),
		"no finish_reason":       stream(delta("hi"), "[DONE]"),
		"an empty finish_reason": stream(`{"choices":[{"delta":{"content":"hi"},"finish_reason":""}]}`, "[DONE]"),
		"no empty line last":     raw("text/event-stream", "data: "+delta("hi")+"\n\ndata: "+stop),
		"carriage returns":       raw("text/event-stream; charset=utf-8", "data: "+delta("hi")+"\r\n\r\ndata: "+stop+"\r\n\r\n"),
		"comments, IDs, names":   raw("text/event-stream", ": ping\n\nid: 7\nevent: message\nretry: 5\ndata: "+delta("hi")+"\n\n: ping\n\ndata: "+stop+"\n\n"),
		"lines of one event":     raw("text/event-stream", "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n"),
		"a byte order mark":      raw("text/event-stream", "\ufeffdata: "+delta("hi")+"\n\ndata: [DONE]\n\n"),
		"null and no choices":    stream(`{"choices":null}`, `{"choices":[]}`, `{"choices":[{"delta":{"content":null},"message":null}]}`, delta("hi"), stop),
		"text after the end":     stream(delta("hi"), stop, "[DONE]", "{"),
		"a number for an ID":     stream(`{"id":7,"model":null,"choices":[{"delta":{"content":"hi"}}]}`, stop),
		"a list of parts":        stream(`{"choices":[{"delta":{"content":[{"type":"text","text":"h"},{"type":"text","text":"i"}]}}]}`, stop),
		"a null error":           stream(`{"error":null,"choices":[{"delta":{"content":"hi"}}]}`, stop),
		"text":                   stream(`{"choices":[{"text":"hi","finish_reason":"stop"}]}`),
		"two choices of a chunk": stream(`{"choices":[{"index":1,"delta":{"content":"ho"}},{"index":0,"delta":{"content":"hi"}}]}`, stop),
		"a second choice": stream(delta("h"), `{"choices":[{"index":1,"delta":{"content":"o","reasoning":"x","refusal":"no"},"finish_reason":"length"}]}`,
			`{"choices":[{"index":"0","delta":{"content":"i"}}]}`, stop),
		"a document of two choices": raw("application/json", `{"choices":[{"index":1,"message":{"content":"ho"}},{"index":0,"message":{"content":"hi"}}]}`),
		"no refusal":                stream(`{"choices":[{"delta":{"content":"hi","refusal":null}}]}`, `{"choices":[{"delta":{"refusal":""}}]}`, stop),
		"choices without index":     stream(`{"choices":[{"delta":{"content":"hi"}},{"delta":{"content":"ho"}}]}`, stop),
		"a document":                raw("application/json", `{"id":"x","model":"y","choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`),
		"a document of text":        raw("application/json; charset=utf-8", `{"choices":[{"text":"hi"}]}`),
		"a document of a delta":     raw("text/plain", ` {"choices":[{"delta":{"content":"hi"}}]} `),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask(t, serve(t, handler)).wantAnswer(t, "hi")
		})
	}
}

func TestFailedAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		kind    class
		words   string
	}{
		"cut off":                 {stream(delta("half of")), "", "cut off"},
		"cut off in an event":     {raw("text/event-stream", "data: "+delta("half of")+"\n\ndata: {\"choices\":[{\"del"), "", "cut off"},
		"cut off in a body":       {hangUp(delta("half of")), "", "cut off"},
		"invalid JSON":            {stream(delta("x"), "{oops", delta("y"), stop), "", "invalid event from the server: {oops"},
		"not an object":           {stream("[1]", stop), "", "invalid event"},
		"a text that is a number": {stream(`{"choices":[{"delta":{"content":7}}]}`, stop), "", "invalid event"},
		"empty":                   {stream(stop, "[DONE]"), "", "empty"},
		"blanks":                  {stream(delta(" \n"), stop), "", "empty"},
		"an empty document":       {raw("application/json", `{"choices":[{"message":{"content":""}}]}`), "", "empty"},
		"an error":                {stream(delta("x"), `{"error":{"message":"the model is on fire","type":"server_error"}}`), "", "the model is on fire"},
		"an error string":         {stream(delta("x"), `{"error":"on fire"}`), "", "on fire"},
		"an event called error":   {raw("text/event-stream", "event: error\ndata: it burns\n\n"), "", "it burns"},
		"exhausted quota":         {stream(`{"error":{"message":"pay","code":"insufficient_quota"}}`), quota, "pay"},
		"an error of Groq":        {stream(delta("x"), `{"x_groq":{"id":"r","error":"over capacity"}}`), "", "the server reported an error: over capacity"},
		"only a second choice":    {stream(`{"choices":[{"index":1,"delta":{"content":"ho"},"finish_reason":"stop"}]}`, "[DONE]"), "", "empty"},
		"an invalid key":          {stream(`{"error":{"message":"no","code":401}}`), authentication, "no"},
		"finish_reason error":     {stream(delta("x"), `{"choices":[{"finish_reason":"error"}]}`), "", "with an error"},
		"finish_reason length":    {stream(delta("x"), `{"choices":[{"finish_reason":"length"}]}`), "", "token limit"},
		"a filter":                {stream(delta("x"), `{"choices":[{"finish_reason":"content_filter"}]}`), "", "filter"},
		"a tool":                  {stream(`{"choices":[{"delta":{"tool_calls":[{}]},"finish_reason":"tool_calls"}]}`), "", "tool"},
		"a document with error":   {raw("application/json", `{"error":{"message":"broken"}}`), "", "broken"},
		"a document cut short":    {raw("application/json", `{"choices":[{"message":{"con`), "", "neither a stream nor JSON"},
		"another document":        {raw("application/json", `{"message":"welcome"}`), "", "contains no answer: welcome"},
		"a page":                  {raw("text/html", `<html>log in to the café</html>`), "", "an HTML page"},
		"no content":              {refuse(http.StatusNoContent, ""), "", "204 No Content"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := ask(t, serve(t, c.handler), "--retries", "0")
			p.wantFailure(t, c.kind, c.words)
			if strings.Contains(name, "cut off") && p.text("text") != "half of" {
				t.Errorf("the text before the cut is missing: %s", p.raw)
			}
		})
	}
}

// hangUp sends events and closes the connection in the middle of the body.
func hangUp(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		stream(events...)(w, r)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []string
		want   string
	}{
		"citations":      {[]string{`{"citations":["https://a.example"],"choices":[{"delta":{"content":"Hello"}}]}`, stop}, "[1] https://a.example\n"},
		"search results": {[]string{delta("Hello"), `{"search_results":[{"title":"B","url":"https://b.example"},{"title":"?"}]}`, stop}, "[1] https://b.example\n[2] \n"},
		"both": {[]string{delta("Hello"), `{"citations":["https://a.example","https://a.example"],"search_results":[{"url":"https://b.example"}]}`, stop},
			"[1] https://a.example\n[2] https://a.example\n"},
		"the last": {[]string{`{"citations":["https://a.example"],"choices":[{"delta":{"content":"Hello"}}]}`,
			`{"citations":["https://a.example","https://b.example"],"choices":[]}`, `{"citations":[],"choices":[]}`, stop}, "[1] https://a.example\n[2] https://b.example\n"},
		"objects":     {[]string{delta("Hello"), `{"citations":[{"url":"https://a.example"}]}`, stop}, "[1] https://a.example\n"},
		"after it":    {[]string{delta("Hello"), stop, `{"citations":["https://a.example"]}`, "[DONE]"}, "[1] https://a.example\n"},
		"line breaks": {[]string{delta("Hello"), `{"citations":["https://a.example\n[2] x"]}`, stop}, "[1] https://a.example [2] x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := ask(t, serve(t, stream(c.events...)), "--provider", "perplexity")
			p.wantAnswer(t, "Hello\n\nSources:\n"+c.want)
			if n := len(p.result(t).Citations); n != strings.Count(c.want, "\n") {
				t.Errorf("the result names %d", n)
			}
		})
	}
	for _, list := range []string{`null`, `7`, `"x"`, `{}`, `[]`} {
		ask(t, serve(t, stream(`{"citations":`+list+`}`, delta("Hello"), stop))).wantAnswer(t, "Hello")
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	cost := 0.25
	for usage, want := range map[string]*Usage{
		`null`: nil, `7`: nil,
		`{"prompt_tokens":3,"completion_tokens":4}`: {Input: 3, Output: 4},
		`{"prompt_tokens":3,"completion_tokens":4,"total_tokens":16,"completion_tokens_details":{"reasoning_tokens":9}}`: {Input: 3, Output: 13, Reasoning: 9},
		`{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"reasoning_tokens":2}`:                                {Input: 3, Output: 4, Reasoning: 2},
		`{"prompt_tokens":3,"completion_tokens":4,"cost":{"total_cost":0.25}}`:                                           {Input: 3, Output: 4, CostUSD: &cost},
		`{"prompt_tokens":3,"completion_tokens":4,"cost":0.25}`:                                                          {Input: 3, Output: 4, CostUSD: &cost},
		`{"prompt_tokens":3,"completion_tokens":4,"cost_in_usd_ticks":2500000000}`:                                       {Input: 3, Output: 4, CostUSD: &cost},
		`{"prompt_tokens":3,"completion_tokens":4,"cost":"much"}`:                                                        {Input: 3, Output: 4},
	} {
		c := chunk{Tokens: json.RawMessage(usage)}
		groq := chunk{Groq: groq{Tokens: json.RawMessage(usage)}}
		for place, c := range map[string]chunk{"usage": c, "x_groq": groq} {
			if got := c.usage(); !reflect.DeepEqual(got, want) {
				t.Errorf("%s of %s is %+v, want %+v", usage, place, got, want)
			}
		}
	}
}

// Usage is reported whatever the end of the run is, and is the sum of all attempts.
func TestUsageOfFailures(t *testing.T) {
	t.Parallel()
	const usage = `"usage":{"prompt_tokens":3,"completion_tokens":4,"cost":0.25}`
	end := func(reason string) string {
		return `{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"` + reason + `"}]}`
	}
	spent := `{"choices":[],` + usage + `}`
	for name, c := range map[string]struct {
		handlers []http.HandlerFunc
		args     []string
		times    int64
	}{
		"a token limit":             {[]http.HandlerFunc{stream(end("length"), spent)}, nil, 1},
		"a filter":                  {[]http.HandlerFunc{stream(end("content_filter"), spent)}, nil, 1},
		"a tool":                    {[]http.HandlerFunc{stream(end("tool_calls"), spent)}, nil, 1},
		"a refusal":                 {[]http.HandlerFunc{stream(`{"choices":[{"delta":{"refusal":"no"}}]}`, stop, spent)}, nil, 1},
		"an empty answer":           {[]http.HandlerFunc{stream(stop, spent)}, nil, 1},
		"cut off":                   {[]http.HandlerFunc{hangUp(delta("x"), spent)}, nil, 1},
		"an error":                  {[]http.HandlerFunc{stream(delta("x"), spent, `{"error":"no"}`)}, nil, 1},
		"an error with usage":       {[]http.HandlerFunc{stream(delta("x"), `{"error":"no",`+usage+`}`)}, nil, 1},
		"an event called error":     {[]http.HandlerFunc{raw("text/event-stream", "event: error\ndata: {\"error\":\"no\","+usage+"}\n\n")}, nil, 1},
		"an invalid event":          {[]http.HandlerFunc{stream(spent, "{", stop)}, nil, 1},
		"an error status":           {[]http.HandlerFunc{refuse(400, `{"error":{"message":"no"},`+usage+`}`)}, nil, 1},
		"a document":                {[]http.HandlerFunc{raw("application/json", `{"choices":[],`+usage+`}`)}, nil, 1},
		"three attempts":            {[]http.HandlerFunc{hangUp(spent)}, []string{"--retries", "2"}, 3},
		"success in a third one":    {[]http.HandlerFunc{hangUp(spent), refuse(503, ""), stream(delta("hi"), stop, spent)}, []string{"--retries", "2"}, 2},
		"usage of the first, alone": {[]http.HandlerFunc{hangUp(spent), stream(delta("hi"), stop)}, []string{"--retries", "1"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := ask(t, serve(t, c.handlers...), append([]string{"--retries", "0"}, c.args...)...)
			p.result(t)
			cost := 0.25 * float64(c.times)
			want := &Usage{Input: 3 * c.times, Output: 4 * c.times, CostUSD: &cost}
			if list := p.of("usage"); len(list) != 1 || !reflect.DeepEqual(list[0].Usage, want) {
				t.Errorf("the output is\n%s", p.raw)
			}
		})
	}
}

// A refusal is the text of a failed run.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"a stream": stream(`{"choices":[{"delta":{"role":"assistant","content":"","refusal":null}}]}`,
			`{"choices":[{"delta":{"refusal":"I cannot"}}]}`, `{"choices":[{"delta":{"refusal":" do that \ud83d"}}]}`, `{"choices":[{"delta":{"refusal":"\ude00"}}]}`, stop, "[DONE]"),
		"after text":      stream(delta("I cannot"), `{"choices":[{"delta":{"refusal":" do that 😀"}}]}`, stop),
		"a filter":        stream(`{"choices":[{"delta":{"refusal":"I cannot do that 😀"},"finish_reason":"content_filter"}]}`),
		"a document":      raw("application/json", `{"choices":[{"message":{"content":null,"refusal":"I cannot do that 😀"},"finish_reason":"stop"}]}`),
		"a whole as well": stream(`{"choices":[{"delta":{"refusal":"I cannot do that 😀"}}]}`, `{"choices":[{"delta":{},"message":{"refusal":"I cannot do that 😀"},"finish_reason":"stop"}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := ask(t, serve(t, handler))
			p.wantFailure(t, "", "the model refused to answer")
			if got := p.text("text"); got != "I cannot do that 😀" {
				t.Errorf("the text is %q", got)
			}
		})
	}
}

// A chunk can be held back when a refusal or another member adds text.
func TestTextAfterARepeatedChunk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event, want string
		refused     bool
	}{
		"a refusal":       {`{"choices":[{"delta":{"refusal":"no"}}]}`, "ABno", true},
		"text":            {`{"choices":[{"text":"C"}]}`, "ABC", false},
		"another message": {`{"choices":[{"message":{"content":"CC"}}]}`, "ABCC", false},
		"a message":       {`{"choices":[{"message":{"content":"ABC"}}]}`, "ABC", false},
		"the same":        {`{"choices":[{"message":{"content":"A"}}]}`, "AB", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := ask(t, serve(t, stream(delta("A"), delta("A"), delta("AB"), c.event, stop)), "--provider", "perplexity")
			if c.refused {
				p.wantFailure(t, "", "refused")
			} else {
				p.wantAnswer(t, c.want)
			}
			if got := p.text("text"); got != c.want {
				t.Errorf("the text is %q, want %q", got, c.want)
			}
		})
	}
}

// The parts of a text are copied once, and are not lists themselves. It runs alone, since
// it measures the memory of the process.
func TestPartsOfContent(t *testing.T) {
	const parts = 4000
	raw := []byte("[" + strings.TrimSuffix(strings.Repeat(`{"text":"`+strings.Repeat("x", 100)+`"},`, parts), ",") + "]")
	var before, after runtime.MemStats
	var c content
	runtime.ReadMemStats(&before)
	err := json.Unmarshal(raw, &c)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; err != nil || len(c) != 100*parts || grown > 64<<20 {
		t.Errorf("%d bytes, %v; it allocated %d MiB", len(c), err, grown>>20)
	}
	if err := json.Unmarshal([]byte(`[{"text":[{"text":"x"}]}]`), &c); err == nil {
		t.Error("a list of lists is accepted")
	}
}

func TestRepeatedChunks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chunks []string
		want   string
	}{
		"all repeat":          {[]string{"He", "Hello", "Hello, world", "Hello, world"}, "Hello, world"},
		"two":                 {[]string{"Hello", "Hello world"}, "Hello world"},
		"the same again":      {[]string{"Hello", "Hello"}, "Hello"},
		"none repeats":        {[]string{"He", "llo", ", ", "world"}, "Hello, world"},
		"looks like it":       {[]string{"1", "10", "5", "10"}, "110510"},
		"the same, then more": {[]string{"ha", "ha", "ha", " that"}, "hahaha that"},
		"repeats, then adds":  {[]string{"a", "ab", "abc", "d"}, "abcd"},
		"repeats a part":      {[]string{"a", "ab", "abc", "ab", "abcd"}, "abcd"},
		"one":                 {[]string{"Hello"}, "Hello"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var events []string
			for _, text := range c.chunks {
				events = append(events, delta(text))
			}
			ask(t, serve(t, stream(append(events, stop)...)), "--provider", "perplexity").wantAnswer(t, c.want)
			// Other providers send increments only.
			ask(t, serve(t, stream(append(events, stop)...)), "--provider", "xai").wantAnswer(t, strings.Join(c.chunks, ""))
		})
	}
}

func TestRepeatedChunksAreStoredOnce(t *testing.T) {
	t.Parallel()
	var r repeats
	for _, chunk := range []string{"x", "xy"} {
		for range 1000 {
			if more := r.next("x", chunk); more != "" {
				t.Fatalf("%q is added", more)
			}
		}
	}
	if len(r.held) != 2 || r.size != 3000 {
		t.Errorf("%d chunks with %d bytes are held", len(r.held), r.size)
	}
	if got, want := r.next("x", "z"), strings.Repeat("x", 1000)+strings.Repeat("xy", 1000)+"z"; got != want {
		t.Errorf("%d bytes are added, want %d", len(got), len(want))
	}
}

// A message next to a delta holds the whole answer.
func TestMessageIsWholeAnswer(t *testing.T) {
	t.Parallel()
	both := func(delta, whole string) string {
		return fmt.Sprintf(`{"choices":[{"delta":{"content":%q},"message":{"content":%q}}]}`, delta, whole)
	}
	for name, events := range map[string][]string{
		"with deltas":     {both("1", "1"), both("10", "110"), both("1", "1101"), both("", "1101")},
		"without deltas":  {both("", "11"), both("", "1101"), both("", "1101"), both("", "11")},
		"one late":        {both("1", ""), both("10", "1"), both("1", "110"), both("", "1101")},
		"at the end":      {delta("11"), delta("01"), both("", "1101")},
		"while held back": {delta("1"), delta("110"), both("", "1101")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask(t, serve(t, stream(append(events, stop)...)), "--provider", "perplexity").wantAnswer(t, "1101")
		})
	}
}

// Answers over the limit fail, and long text is split over several lines.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	long := "x" + strings.Repeat("ü", 600_000)
	p := ask(t, serve(t, raw("application/json", `{"choices":[{"message":{"content":"`+long+long+`"}}]}`)))
	if last := p.result(t); last.Error != "" || last.Text != "" {
		t.Errorf("the result is %q %.20q", last.Error, last.Text)
	}
	if got := p.text("text"); got != long+long {
		t.Errorf("%d bytes of %d", len(got), 2*len(long))
	}
	for _, l := range p.of("text") {
		if len(l.Text) > maxText {
			t.Errorf("a line has %d bytes", len(l.Text))
		}
	}
	for name, c := range map[string]struct {
		kind, begin, more, words string
	}{
		"the same":   {"text/event-stream", "", "data: " + delta(strings.Repeat("x", 1<<10)) + "\n\n", "larger than 100 KiB"},
		"an event":   {"text/event-stream", "data: ", strings.Repeat("x", 1<<16), "larger than 4096 KiB"},
		"a stream":   {"text/event-stream", "", "data: " + delta(strings.Repeat("x", 1<<10)) + "\n\n", "larger than 100 KiB"},
		"a document": {"application/json", `{"choices":[{"message":{"content":"`, strings.Repeat("x", 1<<10), "larger than 100 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, func(w http.ResponseWriter, r *http.Request) {
				raw(c.kind, c.begin)(w, r)
				for range 256 {
					if _, err := w.Write([]byte(c.more)); err != nil {
						return
					}
				}
			})
			limit := func(c *conversation) { c.maxAnswer = 100 << 10 }
			provider := "openai"
			if name == "the same" {
				provider = "perplexity" // which may hold back repeated chunks
			}
			askWith(t, w, nil, limit, "--retries", "0", "--provider", provider).wantFailure(t, "", c.words)
		})
	}
}
