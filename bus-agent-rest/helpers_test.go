package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// runMain is the variable that makes the test binary run main.
const runMain = "BUS_AGENT_REST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// token looks like a real token.
const token = "pplx-5f1e07c2d9a84b63"

// A testServer is a model server that records its requests.
type testServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

// serve starts a server that answers each request with the next handler, and
// further ones with the last.
func serve(t *testing.T, handlers ...http.HandlerFunc) *testServer {
	t.Helper()
	w := new(testServer)
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.mu.Lock()
		w.requests, w.bodies = append(w.requests, r), append(w.bodies, string(body))
		handler := handlers[min(len(w.requests), len(handlers))-1]
		w.mu.Unlock()
		handler(rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

// count returns the number of requests.
func (w *testServer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.requests)
}

// stream returns a handler that sends events with the given data.
func stream(events ...string) http.HandlerFunc {
	var text strings.Builder
	for _, e := range events {
		text.WriteString("data: " + e + "\n\n")
	}
	return raw("text/event-stream", text.String())
}

// raw returns a handler that sends text.
func raw(contentType, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		io.WriteString(w, text)
	}
}

// refuse returns a handler that sends an error status.
func refuse(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// delta returns the data of an event that adds text.
func delta(text string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, text)
}

// stop is the data of the event that ends an answer.
const stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// A transcript is the output of a conversation.
type transcript struct {
	raw   string
	lines []line
	ok    bool
	slept []time.Duration
}

// now is the time in every test.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// ask sends "hello" to the server, with the token in the environment.
func ask(t *testing.T, w *testServer, args ...string) *transcript {
	t.Helper()
	return askWith(t, w, nil, nil, args...)
}

func askWith(t *testing.T, w *testServer, environ map[string]string, change func(*conversation), args ...string) *transcript {
	t.Helper()
	env := map[string]string{"OPENAI_API_KEY": token, "XAI_API_KEY": token, "PERPLEXITY_API_KEY": token}
	for name, value := range environ {
		env[name] = value
	}
	s, err := parseSettings(append([]string{"--base-url", w.URL, "--model", "m"}, args...), func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var text bytes.Buffer
	p := new(transcript)
	c := newConversation(s, &output{to: &text, token: s.token, fail: cancel})
	c.clock = clock{
		now:    func() time.Time { return now },
		jitter: func() float64 { return 0.5 },
		sleep: func(_ context.Context, d time.Duration) error {
			p.slept = append(p.slept, d)
			return nil
		},
	}
	if change != nil {
		change(c)
	}
	p.ok = c.run(ctx, "hello")
	p.raw = text.String()
	p.lines = readLines(t, p.raw)
	return p
}

func readLines(t *testing.T, text string) []line {
	t.Helper()
	var lines []line
	for one := range strings.Lines(text) {
		var l line
		d := json.NewDecoder(strings.NewReader(one))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil || l.Type == "" {
			t.Fatalf("%v: %s", err, one)
		}
		lines = append(lines, l)
	}
	return lines
}

// text returns the joined text of the lines of a type.
func (p *transcript) text(kind string) string {
	var all strings.Builder
	for _, l := range p.of(kind) {
		all.WriteString(l.Text)
	}
	return all.String()
}

func (p *transcript) of(kind string) (list []line) {
	for _, l := range p.lines {
		if l.Type == kind {
			list = append(list, l)
		}
	}
	return list
}

// result returns the last line.
func (p *transcript) result(t *testing.T) line {
	t.Helper()
	last := p.lines[len(p.lines)-1]
	if last.Type != "result" || p.lines[0].Type != "start" {
		t.Fatalf("the output is\n%s", p.raw)
	}
	if n := len(p.of("result")); n != 1 {
		t.Fatalf("there are %d results", n)
	}
	if p.ok == (last.Error != "") {
		t.Fatalf("ok is %t, the result %+v", p.ok, last)
	}
	return last
}

// wantAnswer checks that the conversation succeeded with an answer.
func (p *transcript) wantAnswer(t *testing.T, want string) {
	t.Helper()
	last := p.result(t)
	if last.Error != "" {
		t.Fatalf("failed: %s", last.Error)
	}
	if got := p.text("text"); got != want || last.Text != want {
		t.Errorf("the text is %q and the result %q, want %q", got, last.Text, want)
	}
}

// wantFailure checks that the conversation failed with an error that contains words.
func (p *transcript) wantFailure(t *testing.T, kind class, words ...string) line {
	t.Helper()
	last := p.result(t)
	if last.Failure != kind {
		t.Errorf("the failure is %q, want %q", last.Failure, kind)
	}
	if last.Error == "" {
		t.Fatalf("it did not fail:\n%s", p.raw)
	}
	for _, w := range words {
		if !strings.Contains(last.Error, w) {
			t.Errorf("the error is %q, want %q in it", last.Error, w)
		}
	}
	return last
}
