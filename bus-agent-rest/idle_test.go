package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A slowTransport returns an answer whose parts are delayed.
type slowTransport struct {
	busy       []*http.Response // the first responses
	mediaType  string           // text/event-stream if empty
	parts      []delayed
	slowOutput time.Duration // of each line
	ctx        context.Context
}

type delayed struct {
	after time.Duration
	text  string
}

func (s *slowTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(s.busy) > 0 {
		first := s.busy[0]
		s.busy = s.busy[1:]
		return first, nil
	}
	s.ctx = r.Context()
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {cmp.Or(s.mediaType, "text/event-stream")}},
		Body:       io.NopCloser(s),
		Request:    r,
	}, nil
}

func (s *slowTransport) Read(p []byte) (int, error) {
	wait := time.Hour
	if len(s.parts) > 0 {
		wait = s.parts[0].after
	}
	if err := sleep(s.ctx, wait); err != nil {
		return 0, err
	}
	if len(s.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.parts[0].text)
	s.parts = s.parts[1:]
	return n, nil
}

// ask asks with an idle timeout of ten seconds, in the fake time of synctest, and
// returns how long it took.
func (s *slowTransport) ask(t *testing.T, args ...string) (p *transcript, took time.Duration) {
	t.Helper()
	args = append([]string{"--base-url=http://127.0.0.1:1", "--idle-timeout=10s", "--retries=0"}, args...)
	settings, err := parseSettings(args, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	var text bytes.Buffer
	c := newConversation(settings, &output{to: &slowWriter{&text, s.slowOutput}})
	c.client.Transport = s
	p = &transcript{ok: c.run(t.Context(), "hello"), raw: text.String()}
	p.lines = readLines(t, p.raw)
	return p, time.Since(begun)
}

type slowWriter struct {
	io.Writer
	delay time.Duration
}

func (w *slowWriter) Write(p []byte) (int, error) {
	time.Sleep(w.delay)
	return w.Writer.Write(p)
}

func TestAnyDataResetsIdleTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowTransport{}
		for range 9 {
			s.parts = append(s.parts, delayed{9 * time.Second, ": still here\n\n"})
		}
		s.parts = append(s.parts, delayed{9 * time.Second, "data: " + delta("hi") + "\n\ndata: " + stop + "\n\ndata: [DONE]\n\n"})
		p, took := s.ask(t)
		p.wantAnswer(t, "hi")
		if took != 90*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestIdleTimeoutExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, took := (&slowTransport{parts: []delayed{{9 * time.Second, ": still here\n\n"}, {11 * time.Second, ": too late\n\n"}}}).ask(t)
		p.wantFailure(t, idleTimeout, "sent nothing for too long", "10s")
		if took != 19*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// What arrived before a timeout is reported.
func TestTimeoutInTheAnswer(t *testing.T) {
	t.Parallel()
	begin := delayed{time.Second, "data: " + delta("hal") + "\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n"}
	for name, c := range map[string]struct {
		args  []string
		class class
		words string
		took  time.Duration
	}{
		"silence":             {nil, idleTimeout, "sent nothing for too long", 11 * time.Second},
		"the end of the time": {[]string{"--timeout=5s"}, "", "not complete in time", 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, took := (&slowTransport{parts: []delayed{begin}}).ask(t, c.args...)
				p.wantFailure(t, c.class, c.words)
				if used := p.of("usage"); len(used) != 1 || used[0].Usage.Input != 3 || p.text("text") != "hal" || took != c.took {
					t.Errorf("it took %v: %s", took, p.raw)
				}
			})
		})
	}
}

// After the last text, the server may send usage and need not close the connection. It
// cannot extend that time.
func TestOpenConnectionAfterText(t *testing.T) {
	t.Parallel()
	const last = "data: {\"usage\":{\"prompt_tokens\":1}}\n\n"
	ping := slices.Repeat([]delayed{{time.Second, ": still here\n\n"}}, 60)
	for name, c := range map[string]struct {
		args  []string
		end   string
		after []delayed
		words string // of the failure
	}{
		"silence":             {end: stop, after: []delayed{{time.Second, last}}},
		"keepalives":          {end: stop, after: append([]delayed{{time.Second, last}}, ping...)},
		"no idle timeout":     {args: []string{"--idle-timeout=0"}, end: stop, after: []delayed{{time.Second, last}}},
		"an incomplete usage": {end: stop, after: []delayed{{time.Second, last + "data: {"}}},
		"a token limit":       {end: strings.Replace(stop, "stop", "length", 1), after: []delayed{{time.Second, last}}, words: "token limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := delayed{time.Second, "data: " + delta("hi") + "\n\ndata: " + c.end + "\n\n"}
				p, took := (&slowTransport{parts: append([]delayed{begin}, c.after...)}).ask(t, c.args...)
				if c.words == "" {
					p.wantAnswer(t, "hi")
				} else {
					p.wantFailure(t, "", c.words)
				}
				if len(p.of("usage")) != 1 || took != time.Second+trailerLimit {
					t.Errorf("it took %v: %s", took, p.raw)
				}
			})
		})
	}
}

// A document is complete at its end, even if the connection stays open.
func TestDocumentOnOpenConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowTransport{mediaType: "application/json", parts: []delayed{
			{time.Second, `{"choices":[{"message":{"content":`}, {time.Second, `"hi"}}]}`}, {time.Second, "\n"},
		}}
		p, took := s.ask(t)
		p.wantAnswer(t, "hi")
		if took != 2*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// The time in which the reader of the output is busy is not idle time of the server.
func TestSlowReaderIsNotIdleTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowTransport{parts: []delayed{
			{time.Second, "data: " + delta("h") + "\n\n"}, {time.Second, "data: " + delta("i") + "\n\n"},
			{time.Second, "data: " + stop + "\n\ndata: [DONE]\n\n"},
		}, slowOutput: 20 * time.Second}
		p, _ := s.ask(t)
		p.wantAnswer(t, "hi")
	})
}

// Waiting for the next attempt is not idle time either.
func TestWaitForRetryIsNotIdleTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowTransport{
			busy:  []*http.Response{{StatusCode: 503, Header: http.Header{"Retry-After": {"60"}}, Body: http.NoBody}},
			parts: []delayed{{9 * time.Second, "data: " + delta("hi") + "\n\ndata: [DONE]\n\n"}},
		}
		p, took := s.ask(t, "--retries=1")
		p.wantAnswer(t, "hi")
		if took != 69*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A timeout names the failure before it.
func TestTimeoutNamesTheLastFailure(t *testing.T) {
	t.Parallel()
	const last = "; last failure: the server returned 503 Service Unavailable"
	for name, c := range map[string]struct {
		args  []string
		class class
		want  string
	}{
		"idle":  {nil, idleTimeout, "the server sent nothing for too long: the limit is 10s" + last},
		"total": {[]string{"--timeout=65s"}, "", "the answer was not complete in time: the limit is 1m5s" + last},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				busy := &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"60"}}, Body: http.NoBody}
				p, _ := (&slowTransport{busy: []*http.Response{busy}}).ask(t, append([]string{"--retries=5"}, c.args...)...)
				if l := p.wantFailure(t, c.class); l.Error != c.want {
					t.Errorf("the error is %q, want %q", l.Error, c.want)
				}
			})
		})
	}
}
