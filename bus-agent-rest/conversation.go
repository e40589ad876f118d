package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// Why a conversation ends before its answer.
var (
	errIdle  = errors.New("the server was silent for too long")
	errTotal = errors.New("there was no whole answer in time")
)

// A conversation is one prompt and its answer.
type conversation struct {
	*settings
	out    *output
	client *http.Client
	clock  clock

	maxAnswer int
	asksUsage bool // until a server refuses to be asked
}

func newConversation(s *settings, out *output) *conversation {
	return &conversation{settings: s, out: out, client: newClient(), clock: realClock(), maxAnswer: maxAnswer, asksUsage: s.provider.asksUsage}
}

// hold asks until there is an answer, and reports whether there is none.
func (c *conversation) hold(ctx context.Context, prompt string) (failed bool) {
	c.out.write(&line{
		Type: "start", Agent: "bus-agent-rest", Provider: c.provider.name,
		Model: c.model, Access: c.access, Endpoint: shown(c.endpoint),
	})
	if c.token != "" && c.endpoint.Scheme == "http" && !isLoopback(c.endpoint) {
		c.out.write(&line{Type: "warning", Text: "the token goes to " + c.endpoint.Host + " in the clear; https would hide it"})
	}
	if !utf8.ValidString(prompt) {
		c.out.write(&line{Type: "warning", Text: "the prompt has bytes that are no UTF-8, which JSON cannot hold; U+FFFD is sent in their place"})
	}
	if c.total > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.total, errTotal)
		defer cancel()
	}
	a, f := c.try(ctx, prompt)
	if f != nil {
		c.out.write(&line{Type: "result", Error: f.text, Failure: f.class, Status: f.status})
		return true
	}
	a.end()
	return false
}

// try asks, and asks again while that makes sense.
func (c *conversation) try(ctx context.Context, prompt string) (*answer, *failure) {
	if c.token == "" && c.isDefaultHost() {
		return nil, &failure{class: authentication, text: c.noToken()}
	}
	for attempt := 1; ; attempt++ {
		a := &answer{out: c.out, limit: c.maxAnswer, cumulative: c.provider.cumulative}
		f := c.ask(ctx, prompt, a)
		switch {
		case f == nil:
			return a, nil
		case ctx.Err() != nil:
			return nil, c.stopped(ctx)
		case c.asksUsage && f.status >= 400 && f.status < 500 && strings.Contains(f.text, "stream_options"):
			c.asksUsage = false
			attempt--
			continue
		case !f.again || a.begun():
			return nil, f
		case attempt > c.retries:
			if c.retries > 0 {
				f.text += fmt.Sprintf(" (asked %d times)", attempt)
			}
			return nil, f
		}
		if f = c.wait(ctx, attempt, f); f != nil {
			return nil, f
		}
	}
}

func (c *conversation) noToken() string {
	if c.tokenEnv == "" {
		return "there is no token, and none was to be used"
	}
	return "there is no token; put it into " + c.tokenEnv
}

// wait waits before the next attempt. It returns the failure if there shall be
// none.
func (c *conversation) wait(ctx context.Context, attempt int, f *failure) *failure {
	d := f.after
	if d == notNamed {
		d = c.clock.backoff(attempt)
	}
	deadline, limited := ctx.Deadline()
	if d > longestWait || limited && c.clock.now().Add(d).After(deadline) {
		f.text += fmt.Sprintf(" (to be asked again in %v, which is too long to wait)", d.Round(time.Second))
		return f
	}
	seconds := d.Seconds()
	c.out.write(&line{
		Type: "retry", Text: f.text, Attempt: attempt, MaxAttempts: c.retries,
		WaitSeconds: &seconds, Status: f.status, Failure: f.class,
	})
	if c.clock.sleep(ctx, d) != nil {
		return c.stopped(ctx)
	}
	return nil
}

// stopped returns why ctx has ended.
func (c *conversation) stopped(ctx context.Context) *failure {
	if cause := context.Cause(ctx); errors.Is(cause, errTotal) {
		return &failure{text: fmt.Sprintf("%v: the limit is %v", errTotal, c.total)}
	}
	return &failure{text: "stopped by a signal"}
}

// ask sends one request and reads what comes into a.
func (c *conversation) ask(parent context.Context, prompt string, a *answer) *failure {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	silence := newSilence(c.idle, func() { cancel(errIdle) })
	defer silence.stop()
	a.over = silence.expectEnd
	request, err := c.newRequest(ctx, prompt)
	if err != nil {
		return &failure{text: "the request cannot be made: " + c.out.clip(err.Error())}
	}
	response, err := c.client.Do(request)
	if err == nil {
		defer response.Body.Close()
		silence.broken()
		response.Body = &watched{response.Body, silence}
		f := c.read(response, a)
		if f == nil || !errors.Is(context.Cause(ctx), errIdle) {
			return f
		}
	} else if !errors.Is(context.Cause(ctx), errIdle) {
		return unreachable(err, c.out)
	}
	return &failure{text: fmt.Sprintf("%v: the limit is %v", errIdle, c.idle)}
}

// read reads a response.
func (c *conversation) read(response *http.Response, a *answer) *failure {
	if response.StatusCode != http.StatusOK {
		return refused(response, c.clock.now(), c.out)
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		return a.readStream(response.Body)
	}
	return a.readDocument(response.Body, kind)
}

// A silence ends what it watches when nothing is heard for a while.
type silence struct {
	limit time.Duration
	timer *time.Timer // nil: there is no limit
}

func newSilence(limit time.Duration, end func()) *silence {
	s := &silence{limit: limit}
	if limit > 0 {
		s.timer = time.AfterFunc(limit, end)
	}
	return s
}

// broken takes note that something was heard.
func (s *silence) broken() {
	if s.timer != nil {
		s.timer.Reset(s.limit)
	}
}

// lastWords is how long a server that has said that the answer is over is given
// to say what it cost.
const lastWords = 5 * time.Second

// expectEnd takes note that little more is to be heard.
func (s *silence) expectEnd() {
	if s.timer != nil {
		s.limit = min(s.limit, lastWords)
		s.timer.Reset(s.limit)
	}
}

func (s *silence) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// watched is a body that breaks the silence.
type watched struct {
	io.ReadCloser
	silence *silence
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if n > 0 {
		w.silence.broken()
	}
	return n, err
}
