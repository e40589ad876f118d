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
		"429, then well":             {handlers: []http.HandlerFunc{refuse(429, ""), good}, slept: seconds(1.25)},
		"longer each time":           {handlers: []http.HandlerFunc{refuse(500, ""), refuse(502, ""), refuse(503, ""), refuse(504, ""), refuse(529, ""), good}, slept: seconds(1.25, 2.5, 5, 10, 20)},
		"never more than 32 seconds": {handlers: []http.HandlerFunc{refuse(500, "")}, args: []string{"--retries", "8"}, slept: seconds(1.25, 2.5, 5, 10, 20, 40, 40, 40), words: "500 Internal Server Error (asked 9 times)"},
		"five times, as a rule":      {handlers: []http.HandlerFunc{refuse(429, `{"error":{"message":"slow down"}}`)}, slept: seconds(1.25, 2.5, 5, 10, 20), kind: quota, words: "429 Too Many Requests: slow down (asked 6 times)"},
		"none":                       {handlers: []http.HandlerFunc{refuse(503, ""), good}, args: []string{"--retries", "0"}, words: "503 Service Unavailable"},
		"Retry-After in seconds":     {handlers: []http.HandlerFunc{refuse(429, "", "Retry-After", "7"), refuse(503, "", "Retry-After", "0"), good}, slept: seconds(7, 0)},
		"Retry-After as a date":      {handlers: []http.HandlerFunc{refuse(429, "", "Retry-After", now.Add(30*time.Second).Format(http.TimeFormat)), refuse(429, "", "Retry-After", now.Add(-time.Hour).Format(http.TimeFormat)), good}, slept: seconds(30, 0)},
		"Retry-After as nonsense":    {handlers: []http.HandlerFunc{refuse(429, "", "Retry-After", "soon"), good}, slept: seconds(1.25)},
		"Retry-After too long":       {handlers: []http.HandlerFunc{refuse(429, "", "Retry-After", "3600"), good}, kind: quota, words: "asked again in 1h0m0s"},
		"Retry-After for ever":       {handlers: []http.HandlerFunc{refuse(429, "", "Retry-After", "1e300"), good}, kind: quota, words: "too long to wait"},
		"a timeout of the server":    {handlers: []http.HandlerFunc{refuse(408, ""), good}, slept: seconds(1.25)},
		"a broken connection":        {handlers: []http.HandlerFunc{abort, good}, slept: seconds(1.25)},
		"cut off before its answer":  {handlers: []http.HandlerFunc{hangUp(`{"id":"1","choices":[{"delta":{"role":"assistant"}}]}`), good}, slept: seconds(1.25)},
		"cut off in its answer":      {handlers: []http.HandlerFunc{hangUp(delta("hal")), good}, words: "cut off"},
		"cut off in its thoughts":    {handlers: []http.HandlerFunc{hangUp(`{"choices":[{"delta":{"reasoning":"hm"}}]}`), good}, words: "cut off"},
		"an error of the stream":     {handlers: []http.HandlerFunc{stream(`{"error":{"message":"busy","code":503}}`), good}, slept: seconds(1.25)},
		"a limit of the stream":      {handlers: []http.HandlerFunc{stream(`{"error":{"message":"slow down","code":"429"}}`), good}, slept: seconds(1.25)},
		"one in its answer":          {handlers: []http.HandlerFunc{stream(delta("x"), `{"error":{"message":"busy","code":503}}`), good}, words: "busy"},
		"a quota that is used up":    {handlers: []http.HandlerFunc{refuse(429, `{"error":{"message":"pay","code":"insufficient_quota"}}`), good}, kind: quota, words: "pay"},
		"what it cannot do":          {handlers: []http.HandlerFunc{refuse(501, ""), good}, words: "501 Not Implemented"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, c.handlers...)
			p := converse(t, w, c.args...)
			if c.words == "" {
				p.answers(t, "hi")
			} else {
				p.fails(t, c.kind, c.words)
			}
			if !slices.Equal(p.slept, c.slept) || w.asked() != len(c.slept)+1 {
				t.Errorf("it waited %v and asked %d times, want %v", p.slept, w.asked(), c.slept)
			}
			for i, l := range p.of("retry") {
				if l.Attempt != i+1 || l.MaxAttempts < l.Attempt || l.Text == "" || l.WaitSeconds == nil || *l.WaitSeconds != c.slept[i].Seconds() {
					t.Errorf("%+v", l)
				}
			}
			if n := len(p.of("retry")); n != len(c.slept) {
				t.Errorf("%d lines of retries", n)
			}
		})
	}
}

func abort(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func TestJitterIsHalfAtMost(t *testing.T) {
	t.Parallel()
	c := realClock()
	for range 100 {
		if d := c.backoff(3); d < 4*time.Second || d > 6*time.Second {
			t.Fatal(d)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		kind   class
		words  string
	}{
		"no key":                 {401, `{"error":{"message":"Invalid API key","type":"invalid_request_error","code":"invalid_api_key"}}`, authentication, "401 Unauthorized: Invalid API key"},
		"forbidden":              {403, `{"detail":"not for you"}`, authentication, "403 Forbidden: not for you"},
		"no credits":             {403, `{"code":"denied","error":"Your team has no credits"}`, quota, "no credits"},
		"to be paid":             {402, ``, quota, "402 Payment Required"},
		"a wrong key as a fault": {400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xx"}`, authentication, "Incorrect API key"},
		"another fault":          {400, `{"error":{"message":"no such model","code":400}}`, "", "400 Bad Request: no such model"},
		"nowhere":                {404, `page not found`, "", "404 Not Found: page not found"},
		"words at the top":       {422, `{"object":"error","message":"too long","code":42}`, "", "too long"},
		"a list":                 {422, `{"detail":[{"msg":"missing"}]}`, "", `[{"msg":"missing"}]`},
		"numbers":                {418, `[1, 2]`, "", "[1, 2]"},
		"control characters":     {400, "a\x1b[31mb\r\nc\u202e", "", "a [31mb c"},
		"a long text":            {400, strings.Repeat("ü", 100_000), "", "ü …"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, refuse(c.status, c.body))
			last := converse(t, w).fails(t, c.kind, c.words)
			if last.Status != c.status || w.asked() != 1 || len(last.Error) > 2*clipSize {
				t.Errorf("status %d after %d requests in %d bytes", last.Status, w.asked(), len(last.Error))
			}
		})
	}
}

// Of a refusal without end a part is read.
func TestRefusalWithoutEnd(t *testing.T) {
	t.Parallel()
	w := serve(t, func(w http.ResponseWriter, r *http.Request) {
		refuse(400, "no such ")(w, r)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("model ", 1000)); err != nil {
				return
			}
		}
	})
	converse(t, w, "--timeout", "1m").fails(t, "", "400 Bad Request: no such model")
}

// A server that does not know what it is asked for about usage is asked without.
func TestUsageIsNotInsistedOn(t *testing.T) {
	t.Parallel()
	w := serve(t, refuse(400, `{"error":{"message":"Unrecognized request argument supplied: stream_options"}}`), stream(delta("hi"), stop))
	p := converse(t, w, "--retries", "0")
	p.answers(t, "hi")
	if w.asked() != 2 || strings.Contains(w.bodies[1], "stream_options") || len(p.of("retry")) > 0 {
		t.Errorf("%q", w.bodies)
	}
}

func TestNoToken(t *testing.T) {
	t.Parallel()
	for _, p := range providers {
		s, err := settle([]string{"--provider", p.name}, func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		c := newConversation(s, &output{to: &text})
		c.client.Transport = nowhere{}
		failed := c.hold(t.Context(), "hello")
		if last := readLines(t, text.String())[1]; !failed || last.Failure != authentication || !strings.Contains(last.Error, p.tokenEnv) {
			t.Errorf("%s: %s", p.name, text.String())
		}
	}
	// One's own server needs none.
	w := serve(t, stream(delta("hi"), stop))
	converseWith(t, w, map[string]string{"OPENAI_API_KEY": ""}, nil).answers(t, "hi")
	if _, ok := w.requests[0].Header["Authorization"]; ok {
		t.Error("something is sent for a token")
	}
	// One of another name.
	converseWith(t, w, map[string]string{"MINE": "  my-own-token\n"}, nil, "--token-env", "MINE").answers(t, "hi")
	if got := w.requests[1].Header.Get("Authorization"); got != "Bearer my-own-token" {
		t.Errorf("%q is sent for the token", got)
	}
	converseWith(t, w, nil, nil, "--token-env", "").answers(t, "hi")
	if got := w.requests[2].Header.Get("Authorization"); got != "" {
		t.Errorf("%q is sent for no token", got)
	}
}

// nowhere is a network that must not be asked.
type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("a request was sent")
}

// The token is in no output, whatever a server sends back.
func TestTokenIsNeverPrinted(t *testing.T) {
	t.Parallel()
	echo := func(r *http.Request) string { return r.Header.Get("Authorization") }
	for name, handler := range map[string]http.HandlerFunc{
		"a refusal":  func(w http.ResponseWriter, r *http.Request) { http.Error(w, echo(r), 400) },
		"a retry":    func(w http.ResponseWriter, r *http.Request) { http.Error(w, echo(r), 500) },
		"JSON":       func(w http.ResponseWriter, r *http.Request) { refuse(401, `{"error":{"message":"`+echo(r)+`"}}`)(w, r) },
		"an error":   func(w http.ResponseWriter, r *http.Request) { stream(`{"error":{"message":"`+echo(r)+`"}}`)(w, r) },
		"no JSON":    func(w http.ResponseWriter, r *http.Request) { stream(echo(r), echo(r))(w, r) },
		"a page":     func(w http.ResponseWriter, r *http.Request) { raw("x/"+echo(r), echo(r))(w, r) },
		"the answer": func(w http.ResponseWriter, r *http.Request) { stream(delta(echo(r)), stop)(w, r) },
		"the model": func(w http.ResponseWriter, r *http.Request) {
			stream(`{"model":"`+echo(r)+`"}`, delta("x"), stop)(w, r)
		},
		"thoughts": func(w http.ResponseWriter, r *http.Request) {
			stream(`{"choices":[{"delta":{"reasoning":"`+echo(r)+`"}}]}`, delta("x"), stop)(w, r)
		},
		"the sources": func(w http.ResponseWriter, r *http.Request) {
			stream(`{"citations":["`+echo(r)+`"]}`, delta("x"), stop)(w, r)
		},
		"the reason": func(w http.ResponseWriter, r *http.Request) {
			stream(delta("x"), `{"choices":[{"finish_reason":"`+echo(r)+`"}]}`)(w, r)
		},
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.invalid/"+token, http.StatusTemporaryRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := converse(t, serve(t, handler), "--retries", "1")
			p.result(t)
			if strings.Contains(p.raw, token) || !strings.Contains(p.raw, "***") {
				t.Errorf("the output is\n%s", p.raw)
			}
		})
	}
}

// Where a long text is cut, no part of the token is left, wherever it is cut.
func TestNoPartOfATokenIsPrinted(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", clipSize-len(token)/2)
	for name, handler := range map[string]http.HandlerFunc{
		"a refusal":         refuse(400, long+token),
		"a refusal in JSON": refuse(400, `{"error":{"message":"`+long+token+`"}}`),
		"an error":          stream(`{"error":{"message":"` + long + token + `"}}`),
		"an event":          raw("text/event-stream", "event: error\ndata: "+long+token+"\n\n"),
		"no JSON":           stream(long+token, stop),
		"a document":        raw("application/json", long+token),
		"another document":  raw("application/json", `{"message":"`+long+token+`"}`),
		"a kind":            raw(long+token, "x"),
		"the model":         stream(`{"id":"`+long+token+`","model":"`+long+token+`"}`, delta("x"), stop),
		"the sources":       stream(`{"citations":["`+long+token+`"]}`, delta("x"), stop),
		"the reason":        stream(delta("x"), `{"choices":[{"finish_reason":"`+long+token+`"}]}`),
		"elsewhere":         refuse(307, "", "Location", "http://elsewhere.invalid/"+long[:clipSize-len(token)/2-len("to http://elsewhere.invalid/")]+token),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := converse(t, serve(t, handler), "--retries", "0")
			p.result(t)
			if strings.Contains(p.raw, token[:4]) || !strings.Contains(p.raw, "x***") {
				t.Errorf("the output is\n%s", p.raw)
			}
		})
	}
}

// A key can be in the query of an address, which no text shows.
func TestQueryIsSentButNotShown(t *testing.T) {
	t.Parallel()
	w := serve(t, stream(delta("hi"), stop))
	p := converse(t, w, "--base-url", w.URL+"/openai/deployments/d?api-version=1&key=0123456789")
	p.answers(t, "hi")
	if r := w.requests[0]; r.URL.Path != "/openai/deployments/d/chat/completions" || r.URL.Query().Get("key") != "0123456789" {
		t.Errorf("%s was asked", r.URL)
	}
	w.Close()
	gone := converse(t, w, "--base-url", w.URL+"/?key=0123456789", "--retries", "1")
	gone.fails(t, "", "cannot be reached", "(asked 2 times)")
	for _, text := range []string{p.raw, gone.raw} {
		if strings.Contains(text, "0123456789") {
			t.Errorf("the output is\n%s", text)
		}
	}
}

func TestRedirections(t *testing.T) {
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
		"to another port":      {[]http.HandlerFunc{to(other.URL+"/?secret=1", 307), good}, other.URL + "/, where neither prompt nor token is sent"},
		"as another method":    {[]http.HandlerFunc{to("/elsewhere", 302), good}, "without the prompt"},
		"to another host, 301": {[]http.HandlerFunc{to(other.URL, 301), good}, "neither prompt nor token"},
		"by another scheme": {[]http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://"+r.Host+"/", http.StatusTemporaryRedirect)
		}, good}, "neither prompt nor token"},
		"for ever":              {[]http.HandlerFunc{to("/again", 307)}, "more than 5 addresses"},
		"without saying where":  {[]http.HandlerFunc{refuse(307, "")}, "307"},
		"to what is no address": {[]http.HandlerFunc{refuse(307, "", "Location", "http://[")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, c.handlers...)
			p := converse(t, w, "--retries", "0")
			switch {
			case name == "to what is no address":
				p.fails(t, "")
			case c.words == "":
				p.answers(t, "hi")
				last := len(w.requests) - 1
				if got := w.requests[last].Header.Get("Authorization"); got != "Bearer "+token || w.bodies[last] != w.bodies[0] {
					t.Errorf("%q and %q arrive", got, w.bodies[last])
				}
			default:
				p.fails(t, "", c.words)
			}
		})
	}
	t.Cleanup(func() {
		if other.asked() > 0 {
			t.Error("another host was asked")
		}
	})
}

func TestSilence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begin string
		ready bool // the headers are sent
		want  string
	}{
		"before the headers": {"", false, ""},
		"after the headers":  {"", true, ""},
		"in the answer":      {"data: " + delta("hal") + "\n\n", true, "hal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if c.ready {
					raw("text/event-stream", c.begin)(w, r)
					w.(http.Flusher).Flush()
				}
				<-r.Context().Done()
			})
			p := converse(t, w, "--idle-timeout", "100ms")
			p.fails(t, "", "silent for too long", "100ms")
			if w.asked() != 1 || p.text("text") != c.want {
				t.Errorf("asked %d times, the answer is %q", w.asked(), p.text("text"))
			}
		})
	}
}

// The limit in all holds, whatever is heard.
func TestLimitInAll(t *testing.T) {
	t.Parallel()
	w := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for tick := time.NewTicker(5 * time.Millisecond); r.Context().Err() == nil; {
			io.WriteString(w, ": still here\n\n")
			w.(http.Flusher).Flush()
			<-tick.C
		}
	})
	converse(t, w, "--timeout", "300ms", "--idle-timeout", "1m").fails(t, "", "no whole answer in time", "300ms")
	// Nor is there a wait that ends after it.
	busy := serve(t, refuse(503, "", "Retry-After", "60"))
	p := converseWith(t, busy, nil, func(c *conversation) { c.clock.now = time.Now }, "--timeout", "30s")
	p.fails(t, "", "too long to wait")
	if len(p.slept) > 0 {
		t.Errorf("it waited %v", p.slept)
	}
}

// The limit counts while the next attempt is waited for.
func TestSleepEnds(t *testing.T) {
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

func TestTokenInTheClear(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"http://192.168.1.7:8080/v1": true, "http://models.example": true, "https://models.example": false,
		"http://127.0.0.1:1": false, "http://[::1]:1": false, "http://localhost:1": false,
	} {
		s, err := settle([]string{"--base-url", address, "--retries", "0"}, func(string) string { return token })
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		c := newConversation(s, &output{to: &text})
		c.client.Transport = nowhere{}
		c.hold(t.Context(), "hello")
		if got := strings.Contains(text.String(), `"type":"warning"`); got != want {
			t.Errorf("%s: %s", address, text.String())
		}
	}
}

// A proxy of the environment counts; a certificate that is not trusted is no
// reason to try again.
func TestProxyAndCertificates(t *testing.T) {
	t.Parallel()
	if c := newClient(); c.Transport.(*http.Transport).Proxy == nil {
		t.Error("no proxy is asked for")
	}
	server := httptest.NewUnstartedServer(stream(delta("hi"), stop))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	w := &world{Server: server}
	p := converse(t, w)
	p.fails(t, "", "cannot be reached", "certificate")
	if len(p.slept) > 0 {
		t.Errorf("it waited %v", p.slept)
	}
}

func TestPromptThatIsNoUTF8(t *testing.T) {
	t.Parallel()
	w := serve(t, stream(delta("hi"), stop))
	s, err := settle([]string{"--base-url", w.URL}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if newConversation(s, &output{to: &text}).hold(t.Context(), "a\xffb") || !strings.Contains(text.String(), `"warning"`) {
		t.Error(text.String())
	}
	if !strings.Contains(w.bodies[0], `"a\ufffdb"`) {
		t.Errorf("%s is sent", w.bodies[0])
	}
}

func TestNoSuchHost(t *testing.T) {
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
