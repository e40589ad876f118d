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

// The causes of a canceled request other than a signal.
var (
	errIdle  = errors.New("the server sent nothing for too long")
	errTotal = errors.New("the answer was not complete in time")
)

// A conversation is one prompt and its answer.
type conversation struct {
	*settings
	out    *output
	client *http.Client
	clock  clock

	maxAnswer    int
	requestUsage bool // cleared if the server rejects it
}

func newConversation(s *settings, out *output) *conversation {
	return &conversation{settings: s, out: out, client: newClient(), clock: realClock(), maxAnswer: maxAnswer, requestUsage: s.provider.requestUsage}
}

// run writes the answer to prompt, or the reason why there is none, and reports
// which of the two.
func (c *conversation) run(ctx context.Context, prompt string) (ok bool) {
	c.out.write(&line{
		Type: "start", Agent: "bus-agent-rest", Provider: c.provider.name,
		Model: c.model, Access: c.access, Endpoint: withoutQuery(c.endpoint),
	})
	if c.token != "" && c.endpoint.Scheme == "http" && !isLoopback(c.endpoint) {
		c.out.write(&line{Type: "warning", Text: "the token is sent to " + c.endpoint.Host + " unencrypted; use https"})
	}
	if !utf8.ValidString(prompt) {
		c.out.write(&line{Type: "warning", Text: "the prompt is not valid UTF-8; U+FFFD is sent for each invalid byte"})
	}
	if c.total > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.total, errTotal)
		defer cancel()
	}
	a, f := c.askWithRetries(ctx, prompt)
	if f != nil {
		c.out.write(&line{Type: "result", Error: f.text, Failure: f.class, Status: f.status})
		return false
	}
	a.finish()
	return true
}

func (c *conversation) askWithRetries(ctx context.Context, prompt string) (*answer, *failure) {
	if c.token == "" && c.isDefaultHost() {
		return nil, c.noToken()
	}
	for attempt := 1; ; attempt++ {
		a := &answer{out: c.out, limit: c.maxAnswer, cumulative: c.provider.cumulative}
		f := c.ask(ctx, prompt, a)
		switch {
		case f == nil:
			return a, nil
		case ctx.Err() != nil:
			return nil, c.stopped(ctx)
		case c.requestUsage && f.status >= 400 && f.status < 500 && strings.Contains(f.text, "stream_options"):
			c.requestUsage = false
			attempt--
			continue
		case !f.transient || a.begun():
			return nil, f
		case attempt > c.retries:
			if c.retries > 0 {
				f.text += fmt.Sprintf(" (%d attempts)", attempt)
			}
			return nil, f
		}
		if f = c.wait(ctx, attempt, f); f != nil {
			return nil, f
		}
	}
}

func (c *conversation) noToken() *failure {
	text := "no token: --token-env is empty"
	if c.tokenEnv != "" {
		text = "no token: " + c.tokenEnv + " is not set"
	}
	return &failure{class: authentication, text: text}
}

// wait waits for the time of the next attempt after f. It returns a failure if
// there must not be one.
func (c *conversation) wait(ctx context.Context, attempt int, f *failure) *failure {
	d := f.after
	if d == useBackoff {
		d = c.clock.backoff(attempt)
	}
	deadline, limited := ctx.Deadline()
	if d > maxRetryAfter || limited && c.clock.now().Add(d).After(deadline) {
		f.text += fmt.Sprintf(" (retry after %v is too long to wait)", d.Round(time.Second))
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

// stopped returns the failure of a canceled ctx.
func (c *conversation) stopped(ctx context.Context) *failure {
	if cause := context.Cause(ctx); errors.Is(cause, errTotal) {
		return &failure{text: fmt.Sprintf("%v: the limit is %v", errTotal, c.total)}
	}
	return &failure{text: "stopped by a signal"}
}

// ask sends one request and reads the response into a.
func (c *conversation) ask(parent context.Context, prompt string, a *answer) *failure {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	idle := newIdleTimer(c.idle, func() { cancel(errIdle) })
	defer idle.stop()
	a.finishing = idle.shorten
	request, err := c.newRequest(ctx, prompt)
	if err != nil {
		return &failure{text: "cannot create the request: " + c.out.clip(err.Error())}
	}
	var f *failure
	if response, err := c.client.Do(request); err != nil {
		f = unreachable(err, c.out)
	} else {
		defer response.Body.Close()
		idle.reset()
		response.Body = &timedBody{response.Body, idle}
		f = c.read(response, a)
	}
	if f != nil && errors.Is(context.Cause(ctx), errIdle) {
		return &failure{text: fmt.Sprintf("%v: the limit is %v", errIdle, c.idle)}
	}
	return f
}

func (c *conversation) read(response *http.Response, a *answer) *failure {
	if response.StatusCode != http.StatusOK {
		return refused(response, c.clock.now(), c.out)
	}
	mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if mediaType == "text/event-stream" {
		return a.readStream(response.Body)
	}
	return a.readDocument(response.Body, mediaType)
}

// An idleTimer calls a function if it is not reset for a while.
type idleTimer struct {
	limit time.Duration
	timer *time.Timer // nil if there is no limit
}

func newIdleTimer(limit time.Duration, expired func()) *idleTimer {
	t := &idleTimer{limit: limit}
	if limit > 0 {
		t.timer = time.AfterFunc(limit, expired)
	}
	return t
}

func (t *idleTimer) reset() {
	if t.timer != nil {
		t.timer.Reset(t.limit)
	}
}

// trailerLimit is the idle limit after the end of the text of an answer, when only
// its usage may follow.
const trailerLimit = 5 * time.Second

// shorten lowers the limit to trailerLimit.
func (t *idleTimer) shorten() {
	t.limit = min(t.limit, trailerLimit)
	t.reset()
}

func (t *idleTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// timedBody is a response body that resets a timer at each read.
type timedBody struct {
	io.ReadCloser
	idle *idleTimer
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.idle.reset()
	}
	return n, err
}
