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

// A slow server says each of its parts after a while, and then nothing more.
type slow struct {
	parts   []part
	request context.Context
}

type part struct {
	after time.Duration
	text  string
}

func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	s.request = r.Context()
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"text/event-stream"}},
		Body:       io.NopCloser(s),
		Request:    r,
	}, nil
}

func (s *slow) Read(p []byte) (int, error) {
	wait := time.Hour
	if len(s.parts) > 0 {
		wait = s.parts[0].after
	}
	if err := sleep(s.request, wait); err != nil {
		return 0, err
	}
	if len(s.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.parts[0].text)
	s.parts = s.parts[1:]
	return n, nil
}

// talk has a conversation with a slow server, whose silence may last ten
// seconds, in the time of a bubble, and returns how long it took.
func (s *slow) talk(t *testing.T) (p *played, took time.Duration) {
	t.Helper()
	settings, err := settle([]string{"--base-url=http://127.0.0.1:1", "--idle-timeout=10s", "--retries=0"}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	var text bytes.Buffer
	c := newConversation(settings, &output{to: &text})
	c.client.Transport = s
	p = &played{failed: c.hold(t.Context(), "hello"), raw: text.String()}
	p.lines = readLines(t, p.raw)
	return p, time.Since(begun)
}

// Whatever is heard breaks the silence, be it a comment.
func TestSilenceIsBroken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		for range 9 {
			s.parts = append(s.parts, part{9 * time.Second, ": still here\n\n"})
		}
		s.parts = append(s.parts, part{9 * time.Second, "data: " + delta("hi") + "\n\ndata: " + stop + "\n\ndata: [DONE]\n\n"})
		p, took := s.talk(t)
		p.answers(t, "hi")
		if took != 90*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestSilenceIsTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, took := (&slow{parts: []part{{9 * time.Second, ": still here\n\n"}, {11 * time.Second, ": too late\n\n"}}}).talk(t)
		p.fails(t, "", "silent for too long", "10s")
		if took != 19*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// A server that has said that the answer is over need not close the connection,
// and is given a moment to say what it cost.
func TestSilenceAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, took := (&slow{parts: []part{
			{time.Second, "data: " + delta("hi") + "\n\ndata: " + stop + "\n\n"},
			{time.Second, `data: {"usage":{"prompt_tokens":1}}` + "\n\n"},
		}}).talk(t)
		p.answers(t, "hi")
		if len(p.of("usage")) != 1 || took != 2*time.Second+lastWords {
			t.Errorf("it took %v: %s", took, p.raw)
		}
	})
}
