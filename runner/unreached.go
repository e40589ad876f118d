package runner

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/busdk/bus-agent/agent"
	"github.com/busdk/bus-agent/formatters"
	"github.com/busdk/bus-agent/session"
)

// unreachedDelay is how long an agent repeats a model request without an answer before
// the user is warned. The first repetition comes within seconds, so a model that cannot
// be reached is reported within 30 seconds. Some agents repeat for hours.
const unreachedDelay = 12 * time.Second

// unansweredDelay is how long the first request of a run or turn may stay without an
// answer before the user is warned. A CLI whose packets are dropped, or whose server
// accepts the connection and stays silent, reports no repetition for minutes.
const unansweredDelay = 25 * time.Second

// maxRetryText bounds the reason in that warning, in bytes.
const maxRetryText = 300

// maxRetryLine is how much of a line of standard error is searched, in bytes.
const maxRetryLine = 64 << 10

// retries warns, once in a turn, that an agent repeats model requests without an answer,
// or that its first request has none.
// Its methods may be called by several goroutines at once.
type retries struct {
	of *prepared
	// busy reports that output is being passed on: an answer may wait behind it.
	busy func() bool
	// active reports that the agent has a turn; nil: always.
	active func() bool

	mu      sync.Mutex
	timer   *time.Timer // of the first repetition; nil: no request is repeated
	first   *time.Timer // of the first request; nil: it is answered
	reason  string
	warned  bool // in this turn
	begun   bool // a turn
	unheard bool // the model has not answered in it
	closed  bool
	warning sync.WaitGroup
}

// note records what an event reports about model requests.
func (r *retries) note(e *agent.Event) {
	switch e.Kind {
	case agent.KindRetry:
		r.repeated(e.Text)
	case agent.KindText, agent.KindThinking, agent.KindToolCall, agent.KindToolResult, agent.KindFileChange, agent.KindPlan, agent.KindApproval, agent.KindQuestion:
		r.answered(false)
	case agent.KindResult:
		r.answered(true)
	}
}

// repeated records that a model request is repeated, and the agent's reason.
func (r *retries) repeated(reason string) {
	if r.active != nil && !r.active() {
		return
	}
	reason = quote(r.of.secrets, reason)
	r.mu.Lock()
	defer r.mu.Unlock()
	if reason != "" {
		r.reason = strings.Clone(strings.ToValidUTF8(reason[:min(len(reason), maxRetryText)], ""))
	}
	if r.timer == nil && !r.warned && !r.closed {
		r.start(&r.timer, r.of.unreached)
	}
}

// begin records that the agent gets a prompt, which does not begin a turn if it already
// has one.
func (r *retries) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun || r.closed || !r.of.purpose.talks() && !r.of.selection.Runtime.ReportsResult {
		return // the output of a runtime without results can be one text at its end
	}
	r.begun, r.unheard = true, true
	r.start(&r.first, r.of.unanswered)
}

// start sets a timer that warns; r.mu is held.
func (r *retries) start(timer **time.Timer, d time.Duration) {
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		r.mu.Lock()
		if *timer != t { // the model has answered
			r.mu.Unlock()
			return
		}
		if r.busy() {
			t.Reset(busyCheck)
			r.mu.Unlock()
			return
		}
		line := r.line()
		r.stop()
		r.warned = true
		r.warning.Add(1)
		r.mu.Unlock()
		defer r.warning.Done()
		r.of.warn(line) // which may take its time
	})
	*timer = t
}

// line returns the warning.
func (r *retries) line() string {
	if r.timer == nil {
		return fmt.Sprintf("%s has had no answer from its model for %v; check the network or the provider, or wait", r.of.req.Runtime, r.of.unanswered)
	}
	reason, until := "", "the turn is interrupted"
	if r.reason != "" {
		reason = " (" + r.reason + ")"
	}
	if !r.of.purpose.talks() {
		until = fmt.Sprintf("the time limit of %v", r.of.req.Timeout)
	}
	return fmt.Sprintf("%s gets no answer from its model%s; it keeps trying until %s", r.of.req.Runtime, reason, until)
}

// answered records that the model has answered, and whether that ends the turn.
func (r *retries) answered(ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
	r.unheard = false
	if ended {
		r.warned, r.begun = false, false
	}
}

// unanswered reports whether the turn has no answer of the model yet.
func (r *retries) unanswered() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unheard
}

// stop stops the timers; r.mu is held.
func (r *retries) stop() {
	for _, timer := range []**time.Timer{&r.timer, &r.first} {
		if *timer != nil {
			(*timer).Stop()
		}
		*timer = nil
	}
	r.reason = ""
}

// close waits for the end of a warning, after which there is none.
func (r *retries) close() {
	r.mu.Lock()
	r.closed = true
	r.stop()
	r.mu.Unlock()
	r.warning.Wait()
}

// lines returns a writer for standard error that finds repeated requests in it; nil if
// the runtime reports them in events.
func (r *retries) lines() *formatters.Lines {
	isRetry := r.of.selection.Runtime.RetryStderr
	if isRetry == nil {
		return nil
	}
	return &formatters.Lines{Max: maxRetryLine, Handle: func(line []byte, _ bool, _ int64) error {
		if isRetry(line) {
			r.repeated(string(line))
		}
		return nil
	}}
}

// watchRetries returns a retries that sees the events of a session.
func (p *prepared) watchRetries(options *session.Options, active func() bool) *retries {
	var busy atomic.Bool
	r := &retries{of: p, busy: busy.Load, active: active}
	events, sending, delivered, over := options.Events, options.Sending, options.Delivered, options.Over
	var turn atomic.Pointer[session.Turn] // the one that the agent has
	options.Sending = func(m session.Message) {
		r.begin()
		if sending != nil {
			sending(m)
		}
	}
	options.Delivered = func(t *session.Turn, m session.Message) {
		turn.Store(t)
		if delivered != nil {
			delivered(t, m)
		}
	}
	options.Over = func(t *session.Turn) {
		if turn.CompareAndSwap(t, nil) || turn.Load() == nil { // else it has waited for another
			r.answered(true)
		}
		if over != nil {
			over(t)
		}
	}
	options.Events = func(e *agent.Event) error {
		r.note(e)
		if events == nil {
			return nil
		}
		busy.Store(true)
		defer busy.Store(false)
		return events(e)
	}
	return r
}
