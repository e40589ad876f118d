package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func seconds(list ...float64) []time.Duration {
	var all []time.Duration
	for _, s := range list {
		all = append(all, time.Duration(s*float64(time.Second)))
	}
	return all
}

func TestRetries(t *testing.T) {
	t.Parallel()
	good := stream(delta("hi"), stop)
	for name, c := range map[string]struct {
		handlers []http.HandlerFunc
		args     []string
		slept    []time.Duration
		kind     class
		words    string // of the failure; empty is success
	}{
		"429, then success":         {handlers: []http.HandlerFunc{refuse(429, ""), good}, slept: seconds(1.25)},
		"exponential backoff":       {handlers: []http.HandlerFunc{refuse(500, ""), refuse(502, ""), refuse(503, ""), refuse(504, ""), refuse(529, ""), good}, slept: seconds(1.25, 2.5, 5, 10, 20)},
		"at most 32 seconds":        {handlers: []http.HandlerFunc{refuse(500, "")}, args: []string{"--retries", "8"}, slept: seconds(1.25, 2.5, 5, 10, 20, 40, 40, 40), words: "500 Internal Server Error (9 attempts)"},
		"five by default":           {handlers: []http.HandlerFunc{refuse(429, `{"error":{"message":"slow down"}}`)}, slept: seconds(1.25, 2.5, 5, 10, 20), kind: quota, words: "429 Too Many Requests: slow down (6 attempts)"},
		"none":                      {handlers: []http.HandlerFunc{refuse(503, ""), good}, args: []string{"--retries", "0"}, words: "503 Service Unavailable"},
		"Retry-After in seconds":    {handlers: []http.HandlerFunc{refuse(429, "", "Retry-After", "7"), refuse(503, "", "Retry-After", "0"), good}, slept: seconds(7, 0)},
		"Retry-After as a date":     {handlers: []http.HandlerFunc{refuse(429, "", "Retry-After", now.Add(30*time.Second).Format(http.TimeFormat)), refuse(429, "", "Retry-After", now.Add(-time.Hour).Format(http.TimeFormat)), good}, slept: seconds(30, 0)},
		"Retry-After as nonsense":   {handlers: []http.HandlerFunc{refuse(429, "", "Retry-After", "soon"), good}, slept: seconds(1.25)},
		"Retry-After too long":      {handlers: []http.HandlerFunc{refuse(429, "", "Retry-After", "3600"), good}, kind: quota, words: "retry after 1h0m0s"},
		"Retry-After overflow":      {handlers: []http.HandlerFunc{refuse(429, "", "Retry-After", "1e300"), good}, kind: quota, words: "too long to wait"},
		"milliseconds":              {handlers: []http.HandlerFunc{refuse(429, "", "Retry-After-Ms", "1500", "Retry-After", "2"), refuse(429, "", "X-Ms-Retry-After-Ms", "250"), good}, slept: seconds(1.5, 0.25)},
		"milliseconds as nonsense":  {handlers: []http.HandlerFunc{refuse(429, "", "Retry-After-Ms", "soon", "Retry-After", "2"), good}, slept: seconds(2)},
		"too many milliseconds":     {handlers: []http.HandlerFunc{refuse(429, "", "Retry-After-Ms", "3600000"), good}, kind: quota, words: "retry after 1h0m0s"},
		"a timeout of the server":   {handlers: []http.HandlerFunc{refuse(408, ""), good}, slept: seconds(1.25)},
		"a broken connection":       {handlers: []http.HandlerFunc{abort, good}, slept: seconds(1.25)},
		"cut off before its answer": {handlers: []http.HandlerFunc{hangUp(`{"id":"1","choices":[{"delta":{"role":"assistant"}}]}`), good}, slept: seconds(1.25)},
		"cut off in its answer":     {handlers: []http.HandlerFunc{hangUp(delta("hal")), good}, words: "cut off"},
		"cut off in thinking":       {handlers: []http.HandlerFunc{hangUp(`{"choices":[{"delta":{"reasoning":"hm"}}]}`), good}, words: "cut off"},
		"an error of the stream":    {handlers: []http.HandlerFunc{stream(`{"error":{"message":"busy","code":503}}`), good}, slept: seconds(1.25)},
		"a limit of the stream":     {handlers: []http.HandlerFunc{stream(`{"error":{"message":"slow down","code":"429"}}`), good}, slept: seconds(1.25)},
		"one in its answer":         {handlers: []http.HandlerFunc{stream(delta("x"), `{"error":{"message":"busy","code":503}}`), good}, words: "busy"},
		"exhausted quota":           {handlers: []http.HandlerFunc{refuse(429, `{"error":{"message":"pay","code":"insufficient_quota"}}`), good}, kind: quota, words: "pay"},
		"billing that ends":         {handlers: []http.HandlerFunc{refuse(429, `{"error":{"message":"see /billing"}}`, "Retry-After", "7"), good}, slept: seconds(7)},
		"no billing left":           {handlers: []http.HandlerFunc{refuse(429, `{"error":{"message":"see /billing"}}`), good}, kind: quota, words: "see /billing"},
		"a rate with billing":       {handlers: []http.HandlerFunc{refuse(429, `{"error":{"message":"see /billing","code":"rate_limit_exceeded"}}`), good}, slept: seconds(1.25)},
		"one of the stream":         {handlers: []http.HandlerFunc{stream(`{"error":{"message":"see /billing","code":"rate_limit_error"}}`), good}, slept: seconds(1.25)},
		"501":                       {handlers: []http.HandlerFunc{refuse(501, ""), good}, words: "501 Not Implemented"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, c.handlers...)
			p := ask(t, w, c.args...)
			if c.words == "" {
				p.wantAnswer(t, "hi")
			} else {
				p.wantFailure(t, c.kind, c.words)
			}
			if !slices.Equal(p.slept, c.slept) || w.count() != len(c.slept)+1 {
				t.Errorf("it waited %v and sent %d requests, want waits of %v", p.slept, w.count(), c.slept)
			}
			for i, l := range p.of("retry") {
				if l.Attempt != i+1 || l.MaxAttempts < l.Attempt || l.Text == "" || l.WaitSeconds == nil || *l.WaitSeconds != c.slept[i].Seconds() {
					t.Errorf("%+v", l)
				}
			}
			if n := len(p.of("retry")); n != len(c.slept) {
				t.Errorf("%d retry lines", n)
			}
		})
	}
}

func TestSignalNamesTheLastFailure(t *testing.T) {
	t.Parallel()
	w := serve(t, refuse(503, ""))
	s, err := parseSettings([]string{"--base-url", w.URL}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var text strings.Builder
	c := newConversation(s, &output{to: &text})
	c.clock.sleep = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}
	p := &transcript{ok: c.run(ctx, "hello"), raw: text.String()}
	p.lines = readLines(t, p.raw)
	p.wantFailure(t, "", "stopped by a signal; last failure: the server returned 503 Service Unavailable")
}

func abort(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestJitterIsAtMostHalf(t *testing.T) {
	t.Parallel()
	c := realClock()
	for range 100 {
		if d := c.backoff(3); d < 4*time.Second || d > 6*time.Second {
			t.Fatal(d)
		}
	}
}

func TestErrorStatus(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		kind   class
		words  string
	}{
		"no key":               {401, `{"error":{"message":"Invalid API key","type":"invalid_request_error","code":"invalid_api_key"}}`, authentication, "401 Unauthorized: Invalid API key"},
		"forbidden":            {403, `{"detail":"not for you"}`, authentication, "403 Forbidden: not for you"},
		"no credits":           {403, `{"code":"denied","error":"Your team has no credits"}`, quota, "no credits"},
		"payment":              {402, ``, quota, "402 Payment Required"},
		"invalid key with 400": {400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xx"}`, authentication, "Incorrect API key"},
		"other error":          {400, `{"error":{"message":"no such model","code":400}}`, "", "400 Bad Request: no such model"},
		"digits of a key":      {400, `{"error":{"message":"14012 tokens are too many","code":400}}`, "", "14012 tokens"},
		"digits of a quota":    {400, `{"error":{"message":"14290 tokens are too many","code":400}}`, "", "14290 tokens"},
		"not found":            {404, `page not found`, "", "404 Not Found: page not found"},
		"top-level message":    {422, `{"object":"error","message":"too long","code":42}`, "", "too long"},
		"a list":               {422, `{"detail":[{"msg":"missing"}]}`, "", `[{"msg":"missing"}]`},
		"numbers":              {418, `[1, 2]`, "", "[1, 2]"},
		"control characters":   {400, "a\x1b[31mb\r\nc\u202e", "", "a [31mb c"},
		"a long text":          {400, strings.Repeat("ü", 100_000), "", "ü …"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, refuse(c.status, c.body))
			last := ask(t, w).wantFailure(t, c.kind, c.words)
			if last.Status != c.status || w.count() != 1 || len(last.Error) > 2*clipSize {
				t.Errorf("status %d after %d requests in %d bytes", last.Status, w.count(), len(last.Error))
			}
		})
	}
}

func TestEndlessErrorBody(t *testing.T) {
	t.Parallel()
	w := serve(t, func(w http.ResponseWriter, r *http.Request) {
		refuse(400, "no such ")(w, r)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("model ", 1000)); err != nil {
				return
			}
		}
	})
	ask(t, w, "--timeout", "1m").wantFailure(t, "", "400 Bad Request: no such model")
}

func TestUsageRequestIsDroppedIfRejected(t *testing.T) {
	t.Parallel()
	w := serve(t, refuse(400, `{"error":{"message":"Unrecognized request argument supplied: stream_options"}}`), stream(delta("hi"), stop))
	p := ask(t, w, "--retries", "0")
	p.wantAnswer(t, "hi")
	if w.count() != 2 || strings.Contains(w.bodies[1], "stream_options") || len(p.of("retry")) > 0 {
		t.Errorf("%q", w.bodies)
	}
}

func TestNoToken(t *testing.T) {
	t.Parallel()
	for _, p := range providers {
		s, err := parseSettings([]string{"--provider", p.name}, func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		c := newConversation(s, &output{to: &text})
		c.client.Transport = nowhere{}
		ok := c.run(t.Context(), "hello")
		if last := readLines(t, text.String())[1]; ok || last.Failure != authentication || !strings.Contains(last.Error, p.tokenEnv) {
			t.Errorf("%s: %s", p.name, text.String())
		}
	}
	// Other hosts need no token.
	w := serve(t, stream(delta("hi"), stop))
	askWith(t, w, map[string]string{"OPENAI_API_KEY": ""}, nil).wantAnswer(t, "hi")
	if _, ok := w.requests[0].Header["Authorization"]; ok {
		t.Error("an Authorization header was sent")
	}
	// From another variable.
	askWith(t, w, map[string]string{"MINE": "  my-own-token\n"}, nil, "--token-env", "MINE").wantAnswer(t, "hi")
	if got := w.requests[1].Header.Get("Authorization"); got != "Bearer my-own-token" {
		t.Errorf("Authorization is %q", got)
	}
	askWith(t, w, nil, nil, "--token-env", "").wantAnswer(t, "hi")
	if got := w.requests[2].Header.Get("Authorization"); got != "" {
		t.Errorf("Authorization is %q, want none", got)
	}
}

// nowhere is a transport that fails.
type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("a request was sent")
}

// The server sends the token back.
func TestTokenIsMasked(t *testing.T) {
	t.Parallel()
	echo := func(r *http.Request) string { return r.Header.Get("Authorization") }
	for name, handler := range map[string]http.HandlerFunc{
		"a refusal":    func(w http.ResponseWriter, r *http.Request) { http.Error(w, echo(r), 400) },
		"a retry":      func(w http.ResponseWriter, r *http.Request) { http.Error(w, echo(r), 500) },
		"JSON":         func(w http.ResponseWriter, r *http.Request) { refuse(401, `{"error":{"message":"`+echo(r)+`"}}`)(w, r) },
		"an error":     func(w http.ResponseWriter, r *http.Request) { stream(`{"error":{"message":"`+echo(r)+`"}}`)(w, r) },
		"invalid JSON": func(w http.ResponseWriter, r *http.Request) { stream(echo(r), echo(r))(w, r) },
		"a page":       func(w http.ResponseWriter, r *http.Request) { raw("x/"+echo(r), echo(r))(w, r) },
		"the answer":   func(w http.ResponseWriter, r *http.Request) { stream(delta(echo(r)), stop)(w, r) },
		"the model": func(w http.ResponseWriter, r *http.Request) {
			stream(`{"model":"`+echo(r)+`"}`, delta("x"), stop)(w, r)
		},
		"thinking": func(w http.ResponseWriter, r *http.Request) {
			stream(`{"choices":[{"delta":{"reasoning":"`+echo(r)+`"}}]}`, delta("x"), stop)(w, r)
		},
		"the sources": func(w http.ResponseWriter, r *http.Request) {
			stream(`{"citations":["`+echo(r)+`"]}`, delta("x"), stop)(w, r)
		},
		"the reason": func(w http.ResponseWriter, r *http.Request) {
			stream(delta("x"), `{"choices":[{"finish_reason":"`+echo(r)+`"}]}`)(w, r)
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.invalid/"+token, http.StatusTemporaryRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := ask(t, serve(t, handler), "--retries", "1")
			p.result(t)
			if strings.Contains(p.raw, token) || !strings.Contains(p.raw, "***") {
				t.Errorf("the output is\n%s", p.raw)
			}
		})
	}
}

// The text is truncated within the token.
func TestTruncatedTokenIsMasked(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", clipSize-len(token)/2)
	for name, handler := range map[string]http.HandlerFunc{
		"a refusal":         refuse(400, long+token),
		"a refusal in JSON": refuse(400, `{"error":{"message":"`+long+token+`"}}`),
		"an error":          stream(`{"error":{"message":"` + long + token + `"}}`),
		"an event":          raw("text/event-stream", "event: error\ndata: "+long+token+"\n\n"),
		"invalid JSON":      stream(long+token, stop),
		"a document":        raw("application/json", long+token),
		"another document":  raw("application/json", `{"message":"`+long+token+`"}`),
		"the type":          raw(long+token, "x"),
		"the model":         stream(`{"id":"`+long+token+`","model":"`+long+token+`"}`, delta("x"), stop),
		"the sources":       stream(`{"citations":["`+long+token+`"]}`, delta("x"), stop),
		"the reason":        stream(delta("x"), `{"choices":[{"finish_reason":"`+long+token+`"}]}`),
		"a redirect":        refuse(307, "", "Location", "http://elsewhere.invalid/"+long[:clipSize-len(token)/2-len("to http://elsewhere.invalid/")]+token),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := ask(t, serve(t, handler), "--retries", "0")
			p.result(t)
			if strings.Contains(p.raw, token[:4]) || !strings.Contains(p.raw, "x***") {
				t.Errorf("the output is\n%s", p.raw)
			}
		})
	}
}

// A query can contain a key.
func TestQueryIsSentButNotPrinted(t *testing.T) {
	t.Parallel()
	w := serve(t, stream(delta("hi"), stop))
	p := ask(t, w, "--base-url", w.URL+"/openai/deployments/d?api-version=1&key=0123456789")
	p.wantAnswer(t, "hi")
	if r := w.requests[0]; r.URL.Path != "/openai/deployments/d/chat/completions" || r.URL.Query().Get("key") != "0123456789" {
		t.Errorf("the request went to %s", r.URL)
	}
	w.Close()
	gone := ask(t, w, "--base-url", w.URL+"/?key=0123456789", "--retries", "1")
	gone.wantFailure(t, "", "cannot reach the server", "(2 attempts)")
	for _, text := range []string{p.raw, gone.raw} {
		if strings.Contains(text, "0123456789") {
			t.Errorf("the output is\n%s", text)
		}
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	other := serve(t, stream(delta("stolen"), stop))
	to := func(address string, status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, address, status) }
	}
	good := stream(delta("hi"), stop)
	for name, c := range map[string]struct {
		handlers []http.HandlerFunc
		words    string
	}{
		"on the same host":     {[]http.HandlerFunc{to("/elsewhere", 307), to("/further", 308), good}, ""},
		"to another port":      {[]http.HandlerFunc{to(other.URL+"/?secret=1", 307), good}, other.URL + "/, which gets neither prompt nor token"},
		"as another method":    {[]http.HandlerFunc{to("/elsewhere", 302), good}, "without the prompt"},
		"to another host, 301": {[]http.HandlerFunc{to(other.URL, 301), good}, "neither prompt nor token"},
		"by another scheme": {[]http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://"+r.Host+"/", http.StatusTemporaryRedirect)
		}, good}, "neither prompt nor token"},
		"endless":               {[]http.HandlerFunc{to("/again", 307)}, "more than 5 times"},
		"without an address":    {[]http.HandlerFunc{refuse(307, "")}, "307"},
		"to an invalid address": {[]http.HandlerFunc{refuse(307, "", "Location", "http://[")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, c.handlers...)
			p := ask(t, w, "--retries", "0")
			switch {
			case name == "to an invalid address":
				p.wantFailure(t, "")
			case c.words == "":
				p.wantAnswer(t, "hi")
				last := len(w.requests) - 1
				if got := w.requests[last].Header.Get("Authorization"); got != "Bearer "+token || w.bodies[last] != w.bodies[0] {
					t.Errorf("the server got the token %q and the body %q", got, w.bodies[last])
				}
			default:
				p.wantFailure(t, "", c.words)
			}
		})
	}
	t.Cleanup(func() {
		if other.count() > 0 {
			t.Error("another host got a request")
		}
	})
}

func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	for name, ready := range map[string]bool{"before the headers": false, "after the headers": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if ready {
					raw("text/event-stream", "")(w, r)
					w.(http.Flusher).Flush()
				}
				<-r.Context().Done()
			})
			p := ask(t, w, "--idle-timeout", "100ms")
			p.wantFailure(t, idleTimeout, "sent nothing for too long", "100ms")
			if w.count() > 1 { // none if connecting takes too long
				t.Errorf("%d requests", w.count())
			}
		})
	}
}

// The server sends data all the time.
func TestTimeout(t *testing.T) {
	t.Parallel()
	w := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for tick := time.NewTicker(5 * time.Millisecond); r.Context().Err() == nil; {
			io.WriteString(w, ": still here\n\n")
			w.(http.Flusher).Flush()
			<-tick.C
		}
	})
	ask(t, w, "--timeout", "300ms", "--idle-timeout", "1m").wantFailure(t, "", "not complete in time", "300ms")
	// A wait that would end after the timeout is not begun.
	busy := serve(t, refuse(503, "", "Retry-After", "60"))
	p := askWith(t, busy, nil, func(c *conversation) { c.clock.now = time.Now }, "--timeout", "30s")
	p.wantFailure(t, "", "too long to wait")
	if len(p.slept) > 0 {
		t.Errorf("it waited %v", p.slept)
	}
}

func TestSleepIsCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errTotal)
	if err := sleep(ctx, time.Hour); !errors.Is(err, errTotal) {
		t.Error(err)
	}
	if err := sleep(t.Context(), time.Nanosecond); err != nil {
		t.Error(err)
	}
}

func TestUnencryptedTokenWarns(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"http://192.168.1.7:8080/v1": true, "http://models.example": true, "https://models.example": false,
		"http://127.0.0.1:1": false, "http://[::1]:1": false, "http://localhost:1": false,
	} {
		s, err := parseSettings([]string{"--base-url", address, "--retries", "0"}, func(string) string { return token })
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		c := newConversation(s, &output{to: &text})
		c.client.Transport = nowhere{}
		c.run(t.Context(), "hello")
		if got := strings.Contains(text.String(), `"type":"warning"`); got != want {
			t.Errorf("%s: %s", address, text.String())
		}
	}
}

// The environment configures the proxy, and an untrusted certificate is not
// retried.
func TestProxyAndCertificates(t *testing.T) {
	t.Parallel()
	if c := newClient(); c.Transport.(*http.Transport).Proxy == nil {
		t.Error("the client uses no proxy")
	}
	server := httptest.NewUnstartedServer(stream(delta("hi"), stop))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	w := &testServer{Server: server}
	p := ask(t, w)
	p.wantFailure(t, "", "cannot reach the server", "certificate")
	if len(p.slept) > 0 {
		t.Errorf("it waited %v", p.slept)
	}
}

func TestInvalidUTF8InPrompt(t *testing.T) {
	t.Parallel()
	w := serve(t, stream(delta("hi"), stop))
	s, err := parseSettings([]string{"--base-url", w.URL}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if !newConversation(s, &output{to: &text}).run(t.Context(), "a\xffb") || !strings.Contains(text.String(), `"warning"`) {
		t.Error(text.String())
	}
	if !strings.Contains(w.bodies[0], `"a\ufffdb"`) {
		t.Errorf("the body is %s", w.bodies[0])
	}
}

func TestIsTransient(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		&net.DNSError{IsNotFound: true}:  false,
		&net.DNSError{IsTemporary: true}: true,
		io.ErrUnexpectedEOF:              true,
		tls.RecordHeaderError{}:          false,
	} {
		if got := isTransient(&net.OpError{Err: err}); got != want {
			t.Errorf("%v is transient: %t", err, got)
		}
	}
}
