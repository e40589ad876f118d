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

// maxRetryText bounds the reason in that warning, in bytes.
const maxRetryText = 300

// maxRetryLine is how much of a line of standard error is searched, in bytes.
const maxRetryLine = 64 << 10

// retries warns, once in a turn, that an agent repeats model requests without an answer.
// Its methods may be called by several goroutines at once.
type retries struct {
	of *prepared
	// busy reports that output is being passed on: an answer may wait behind it.
	busy func() bool
	// active reports that the agent has a turn; nil: always.
	active func() bool

	mu      sync.Mutex
	timer   *time.Timer // of the first repetition; nil: no request is repeated
	streak  int         // number of the timer
	reason  string
	warned  bool // in this turn
	closed  bool
	warning sync.WaitGroup
}

// note records what an event reports about model requests.
func (r *retries) note(e *agent.Event) {
	switch e.Kind {
	case agent.KindRetry:
		r.repeated(e.Text)
	case agent.KindText, agent.KindThinking, agent.KindToolCall, agent.KindToolResult, agent.KindFileChange, agent.KindPlan, agent.KindApproval:
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
		r.streak++
		streak := r.streak
		r.timer = time.AfterFunc(r.of.unreached, func() { r.due(streak) })
	}
}

// due warns, unless the model has answered since the first repetition of the streak.
func (r *retries) due(streak int) {
	r.mu.Lock()
	if r.timer == nil || r.streak != streak {
		r.mu.Unlock()
		return
	}
	if r.busy() {
		r.timer.Reset(busyCheck)
		r.mu.Unlock()
		return
	}
	r.timer, r.warned = nil, true
	line := r.line()
	r.warning.Add(1)
	r.mu.Unlock()
	defer r.warning.Done()
	r.of.warn(line) // which may take its time
}

// line returns the warning.
func (r *retries) line() string {
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
	if ended {
		r.warned = false
	}
}

// stop stops the timer; r.mu is held.
func (r *retries) stop() {
	if r.timer != nil {
		r.timer.Stop()
	}
	r.timer, r.reason = nil, ""
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
	events := options.Events
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
