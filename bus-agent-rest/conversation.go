package main

import (
	"cmp"
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
	requestUsage bool   // cleared if the server rejects it
	usage        *Usage // of all attempts, nil if unknown
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
	if f == nil {
		a.addSources()
	}
	if c.usage != nil {
		c.out.write(&line{Type: "usage", Usage: c.usage})
	}
	if f != nil {
		c.out.write(&line{Type: "result", Error: f.text, Failure: f.class, Status: f.status})
		return false
	}
	c.out.write(a.result())
	return true
}

func (c *conversation) askWithRetries(ctx context.Context, prompt string) (*answer, *failure) {
	var last *failure // of the attempt before
	if c.token == "" && c.isDefaultHost() {
		return nil, c.noToken()
	}
	for attempt := 1; ; attempt++ {
		a := &answer{out: c.out, limit: c.maxAnswer, cumulative: c.provider.cumulative}
		f := c.ask(ctx, prompt, a)
		switch {
		case f == nil:
			return a, nil
		case ctx.Err() != nil && !a.complete():
			return nil, c.stopped(ctx, last)
		case f.class == idleTimeout:
			return nil, f.after(last)
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
		last = f
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
	d := f.wait
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
		return c.stopped(ctx, f)
	}
	return nil
}

// stopped returns the failure of a canceled ctx. Last is the one of the attempt before,
// or nil.
func (c *conversation) stopped(ctx context.Context, last *failure) *failure {
	f := &failure{text: "stopped by a signal"}
	if cause := context.Cause(ctx); errors.Is(cause, errTotal) {
		f.text = fmt.Sprintf("%v: the limit is %v", errTotal, c.total)
	}
	return f.after(last)
}

// ask sends one request and reads the response into a.
func (c *conversation) ask(parent context.Context, prompt string, a *answer) *failure {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	idle := &idleTimer{limit: c.idle, expired: func() { cancel(errIdle) }}
	defer idle.stop()
	a.finishing = idle.finish
	request, err := c.newRequest(ctx, prompt)
	if err != nil {
		return &failure{text: "cannot create the request: " + c.out.clip(err.Error())}
	}
	idle.start()
	response, err := c.client.Do(request)
	idle.stop()
	var f *failure
	if err != nil {
		f = unreachable(err, c.out)
	} else {
		defer response.Body.Close()
		response.Body = &timedBody{response.Body, idle}
		f = c.read(response, a)
		c.usage = c.usage.plus(a.usage)
	}
	if f != nil && !a.complete() && errors.Is(context.Cause(ctx), errIdle) {
		return &failure{text: fmt.Sprintf("%v: the limit is %v", errIdle, c.idle), class: idleTimeout}
	}
	return f
}

func (c *conversation) read(response *http.Response, a *answer) *failure {
	if response.StatusCode != http.StatusOK {
		return a.readRefusal(response, c.clock.now())
	}
	mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if mediaType == "text/event-stream" {
		return a.readStream(response.Body)
	}
	return a.readDocument(response.Body, mediaType)
}

// An idleTimer calls a function when the server sends nothing for too long. Its time
// runs only between start and stop, while the program waits for the server.
type idleTimer struct {
	limit   time.Duration // 0: none
	end     time.Time     // of the last wait; zero: none
	timer   *time.Timer   // nil before the first start with a limit
	expired func()
}

func (t *idleTimer) start() {
	limit := t.limit
	if !t.end.IsZero() {
		left := max(time.Until(t.end), time.Nanosecond)
		limit = min(cmp.Or(limit, left), left)
	}
	switch {
	case limit == 0:
	case t.timer == nil:
		t.timer = time.AfterFunc(limit, t.expired)
	default:
		t.timer.Reset(limit)
	}
}

func (t *idleTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// trailerLimit bounds the time after the end of the text of an answer, when only its
// usage may follow. The server may keep the connection open.
const trailerLimit = 5 * time.Second

// finish limits all further waits together to trailerLimit.
func (t *idleTimer) finish() { t.end = time.Now().Add(trailerLimit) }

// timedBody is a response body that runs a timer during each read.
type timedBody struct {
	io.ReadCloser
	idle *idleTimer
}

func (b *timedBody) Read(p []byte) (int, error) {
	b.idle.start()
	defer b.idle.stop()
	return b.ReadCloser.Read(p)
}
