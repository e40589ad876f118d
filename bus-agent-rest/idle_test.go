package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A slowTransport returns an answer whose parts are delayed.
type slowTransport struct {
	parts []delayed
	ctx   context.Context
}

type delayed struct {
	after time.Duration
	text  string
}

func (s *slowTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	s.ctx = r.Context()
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"text/event-stream"}},
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
func (s *slowTransport) ask(t *testing.T) (p *transcript, took time.Duration) {
	t.Helper()
	settings, err := parseSettings([]string{"--base-url=http://127.0.0.1:1", "--idle-timeout=10s", "--retries=0"}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	var text bytes.Buffer
	c := newConversation(settings, &output{to: &text})
	c.client.Transport = s
	p = &transcript{ok: c.run(t.Context(), "hello"), raw: text.String()}
	p.lines = readLines(t, p.raw)
	return p, time.Since(begun)
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
		p.wantFailure(t, "", "sent nothing for too long", "10s")
		if took != 19*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// After the last text, the server may send usage and need not close the connection.
func TestIdleTimeoutIsShorterAfterText(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, took := (&slowTransport{parts: []delayed{
			{time.Second, "data: " + delta("hi") + "\n\ndata: " + stop + "\n\n"},
			{time.Second, `data: {"usage":{"prompt_tokens":1}}` + "\n\n"},
		}}).ask(t)
		p.wantAnswer(t, "hi")
		if len(p.of("usage")) != 1 || took != 2*time.Second+trailerLimit {
			t.Errorf("it took %v: %s", took, p.raw)
		}
	})
}
